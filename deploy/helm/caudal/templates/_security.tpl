{{/* What security.enabled adds. The same settings are in deploy/compose/secure.yaml and deploy/config/secure. */}}

{{/* "https" or "http". */}}
{{- define "caudal.scheme" -}}
{{- ternary "https" "http" .Values.security.enabled -}}
{{- end -}}

{{/* Where services reach the broker with their certificates. */}}
{{- define "caudal.brokers" -}}
{{- printf "%s:%v" (include "caudal.host" (list . "broker")) .Values.services.broker.brokersPort -}}
{{- end -}}

{{/* The Secret with the certificate of a service: (list . "broker"). */}}
{{- define "caudal.certificate" -}}
{{- $service := index (index . 0).Values.services (index . 1) -}}
{{- default (printf "%s-tls" (include "caudal.object" .)) $service.tls.existingSecret -}}
{{- end -}}

{{/* The name and the protocol of each listener that a broker advertises: (list . host). */}}
{{- define "caudal.advertised" -}}
{{- $root := index . 0 -}}
{{- $host := index . 1 -}}
{{- $service := $root.Values.services.broker -}}
{{- if $root.Values.security.enabled -}}
{{- printf "CLIENTS://%s:%v,BROKERS://%s:%v,CONTROLLER://%s:%v" $host $service.port $host $service.brokersPort $host $service.controllerPort -}}
{{- else -}}
{{- printf "PLAINTEXT://%s:%v,CONTROLLER://%s:%v" $host $service.port $host $service.controllerPort -}}
{{- end -}}
{{- end -}}

{{/* Settings of a service, as YAML: (list . "broker"). */}}
{{- define "caudal.security" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := index $root.Values.services $name -}}
{{- if $root.Values.security.enabled }}
{{- $files := "/run/secrets/caudal" }}
ssl.principal.mapping.rules: RULE:^CN=([A-Za-z0-9._-]+)$/$1/,DEFAULT
{{- if eq $name "broker" }}
listeners: {{ printf "CLIENTS://:%v,BROKERS://:%v,CONTROLLER://:%v" $service.port $service.brokersPort $service.controllerPort }}
listener.security.protocol.map: CLIENTS:SASL_SSL,BROKERS:SSL,CONTROLLER:SSL
inter.broker.listener.name: BROKERS
sasl.enabled.mechanisms: SCRAM-SHA-512
listener.name.clients.scram-sha-512.sasl.jaas.config: org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.brokers.ssl.client.auth: required
listener.name.controller.ssl.client.auth: required
ssl.keystore.type: PEM
ssl.keystore.location: {{ $files }}/tls.crt
ssl.key.location: {{ $files }}/tls.key
ssl.truststore.type: PEM
ssl.truststore.location: {{ $files }}/ca.crt
metrics.listener: {{ printf "https://:%v" $service.healthPort }}
authorizer.class.name: org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users: User:broker;{{ $root.Values.security.superUsers }}
confluent.ssl.truststore.location: {{ $files }}/ca.crt
confluent.ssl.keystore.location: {{ $files }}/tls.crt
confluent.ssl.key.location: {{ $files }}/tls.key
{{- else }}
listeners: {{ printf "https://:%v" $service.port }}
ssl.certificate.location: {{ $files }}/tls.crt
ssl.key.location: {{ $files }}/tls.key
ssl.ca.location: {{ $files }}/ca.crt
ssl.client.authentication: REQUESTED
authentication.method: BASIC,CERTIFICATE
authentication.skip.paths: /health
authentication.kafka.bootstrap.servers: {{ include "caudal.bootstrap" $root }}
authentication.kafka.security.protocol: SASL_SSL
authentication.kafka.sasl.mechanism: SCRAM-SHA-512
authentication.kafka.ssl.ca.location: {{ $files }}/ca.crt
{{- if or (eq $name "registry") (eq $name "connect") }}
super.users: {{ $root.Values.security.superUsers }}
{{- end }}
{{- if ne $name "registry" }}
{{- if not $root.Values.kafka.bootstrapServers }}
bootstrap.servers: {{ include "caudal.brokers" $root }}
{{- end }}
client.security.protocol: SSL
client.ssl.ca.location: {{ $files }}/ca.crt
client.ssl.certificate.location: {{ $files }}/tls.crt
client.ssl.key.location: {{ $files }}/tls.key
{{- end }}
{{- if eq $name "rest-proxy" }}
schema.registry.ssl.ca.location: {{ $files }}/ca.crt
schema.registry.as.caller: "true"
{{- end }}
{{- if eq $name "streams" }}
ksql.schema.registry.ssl.ca.location: {{ $files }}/ca.crt
ksql.schema.registry.ssl.certificate.location: {{ $files }}/tls.crt
ksql.schema.registry.ssl.key.location: {{ $files }}/tls.key
{{- end }}
{{- if eq $name "connect" }}
config.providers: file,dir
config.providers.file.param.allowed.paths: /run/secrets/connectors
config.providers.dir.param.allowed.paths: /run/secrets/connectors
connector.allowed.addresses: {{ include "caudal.host" (list $root "registry") }}:{{ $root.Values.services.registry.port }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What a pod mounts: (list . "broker"). */}}
{{- define "caudal.securityMounts" -}}
{{- if (index . 0).Values.security.enabled }}
- {name: certificate, mountPath: /run/secrets/caudal, readOnly: true}
{{- if eq (index . 1) "connect" }}
- {name: connectors, mountPath: /run/secrets/connectors, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "caudal.securityVolumes" -}}
{{- $values := (index . 0).Values }}
{{- if $values.security.enabled }}
- name: certificate
  secret:
    secretName: {{ include "caudal.certificate" . }}
    # The group of the pod.
    defaultMode: 0440
{{- if eq (index . 1) "connect" }}
- name: connectors
  {{- if $values.security.connectors.existingSecret }}
  secret:
    secretName: {{ $values.security.connectors.existingSecret }}
    defaultMode: 0440
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* How the kubelet asks for the health of a service, which needs no login: (list . "broker"). */}}
{{- define "caudal.health" -}}
{{- $root := index . 0 -}}
{{- $service := index $root.Values.services (index . 1) -}}
{{- if not $root.Values.security.enabled -}}
httpGet: {path: /health, port: {{ $service.healthPort }}}
{{- else if eq (index . 1) "broker" -}}
# It asks for a certificate, which the kubelet does not have.
exec: {command: [python, "-m", deploy.health_check, broker, "--config", /etc/caudal/{{ $service.configFile }}]}
{{- else -}}
httpGet: {path: /health, port: {{ $service.healthPort }}, scheme: HTTPS}
{{- end -}}
{{- end -}}
