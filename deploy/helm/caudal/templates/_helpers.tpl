{{/* Names. */}}
{{- define "caudal.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "caudal.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "caudal.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a service's objects: (list . "broker"). */}}
{{- define "caudal.object" -}}
{{- printf "%s-%s" (include "caudal.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{/* The name under which others reach a service: (list . "broker"). */}}
{{- define "caudal.host" -}}
{{- printf "%s.%s.svc" (include "caudal.object" .) (index . 0).Release.Namespace -}}
{{- end -}}

{{- define "caudal.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "caudal.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels: (list . "broker"). */}}
{{- define "caudal.selector" -}}
app.kubernetes.io/name: {{ include "caudal.name" (index . 0) }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "caudal.labels" -}}
{{ include "caudal.selector" . }}
app.kubernetes.io/part-of: caudal
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end -}}

{{/* "true" when a service runs here, and not elsewhere: (list . "broker"). */}}
{{- define "caudal.isHere" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := index $root.Values.services $name -}}
{{- if not $service.enabled -}}
{{- else if and (eq $name "broker") $root.Values.kafka.bootstrapServers -}}
{{- else if and (eq $name "registry") $root.Values.schemaRegistry.url -}}
{{- else -}}true{{- end -}}
{{- end -}}

{{/* The name under which the pods of the broker are found one by one: POD.NODES. */}}
{{- define "caudal.nodes" -}}
{{- printf "%s-nodes.%s.svc" (include "caudal.object" (list . "broker")) .Release.Namespace -}}
{{- end -}}

{{/* Where topics are. */}}
{{- define "caudal.bootstrap" -}}
{{- if .Values.kafka.bootstrapServers -}}
{{- .Values.kafka.bootstrapServers -}}
{{- else if .Values.services.broker.enabled -}}
{{- printf "%s:%v" (include "caudal.host" (list . "broker")) .Values.services.broker.port -}}
{{- else -}}
{{- fail "services.broker is not enabled: say with kafka.bootstrapServers where Kafka is" -}}
{{- end -}}
{{- end -}}

{{/* Where schemas are. */}}
{{- define "caudal.registryUrl" -}}
{{- if .Values.schemaRegistry.url -}}
{{- .Values.schemaRegistry.url -}}
{{- else -}}
{{- printf "%s://%s:%v" (include "caudal.scheme" .) (include "caudal.host" (list . "registry")) .Values.services.registry.port -}}
{{- end -}}
{{- end -}}

{{/* Where Connect is, for statements about connectors. With logins, Connect's own rules are for its own callers. */}}
{{- define "caudal.connectUrl" -}}
{{- if and (include "caudal.isHere" (list . "connect")) (not .Values.security.enabled) -}}
{{- printf "http://%s:%v" (include "caudal.host" (list . "connect")) .Values.services.connect.port -}}
{{- end -}}
{{- end -}}

{{- define "caudal.hasPostgresql" -}}
{{- if or .Values.postgresql.url .Values.postgresql.existingSecret -}}true{{- end -}}
{{- end -}}

{{- define "caudal.hasRedis" -}}
{{- if or .Values.redis.url .Values.redis.existingSecret -}}true{{- end -}}
{{- end -}}

{{/* "true" when a service keeps something on a disk of its own: (list . "registry"). */}}
{{- define "caudal.hasDisk" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := index $root.Values.services $name -}}
{{- if not $service.persistence.enabled -}}
{{- else if and (eq $name "registry") (include "caudal.hasPostgresql" $root) -}}
{{- else -}}true{{- end -}}
{{- end -}}

{{/* The properties file of a service: (list . "broker"). */}}
{{- define "caudal.properties" -}}
{{- $root := index . 0 -}}
{{- $service := index $root.Values.services (index . 1) -}}
{{- $settings := deepCopy $service.settings -}}
{{- if $service.spark -}}
  {{- if and (eq (index . 1) "connect") (include "caudal.hasRedis" $root) -}}{{- $_ := set $settings "executor" "celery" -}}{{- end -}}
  {{- with $root.Values.spark.master -}}{{- $_ := set $settings "spark.master" . -}}{{- end -}}
  {{- with $root.Values.spark.warehouse -}}{{- $_ := set $settings "spark.caudal.warehouse.dir" . -}}{{- end -}}
{{- end -}}
{{- range $key, $value := merge (deepCopy $service.extraSettings) (fromYaml (include "caudal.security" .)) $settings }}
{{ $key }}={{ tpl (toString $value) $root }}
{{- end }}
{{- end -}}

{{/* The image: (list . service). */}}
{{- define "caudal.image" -}}
{{- $image := ternary (index . 0).Values.sparkImage (index . 0).Values.image (index . 1).spark -}}
image: {{ printf "%s:%s" $image.repository $image.tag | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end -}}

{{/* Variables that only a pod, or a Secret, knows: (list . "connect" service). */}}
{{- define "caudal.env" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := index . 2 -}}
{{- if eq $name "connect" }}
- name: {{ $service.environmentPrefix }}REST_ADVERTISED_HOST_NAME
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}
{{- if and $service.spark $root.Values.spark.master }}
- name: {{ $service.environmentPrefix }}SPARK_DRIVER_HOST
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}
{{- if and (eq $name "connect") (include "caudal.hasRedis" $root) }}
- name: {{ $service.environmentPrefix }}CELERY_BROKER_URL
  valueFrom:
    secretKeyRef:
      name: {{ default (include "caudal.object" (list $root "redis")) $root.Values.redis.existingSecret }}
      key: {{ $root.Values.redis.secretKey }}
{{- end }}
{{- if eq $name "broker" }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- {name: NODES_HOST, value: {{ include "caudal.nodes" $root | quote }}}
- {name: BROKER_COUNT, value: {{ $service.replicas | quote }}}
- {name: CONTROLLER_PORT, value: {{ $service.controllerPort | quote }}}
- {name: HEALTH_SCHEME, value: {{ include "caudal.scheme" $root }}}
- {name: HEALTH_PORT, value: {{ $service.healthPort | quote }}}
- {name: DATA_DIR, value: {{ $service.persistence.path | quote }}}
{{- if not (hasKey $service.extraSettings "advertised.listeners") }}
{{- $pod := printf "$(POD_NAME).%s" (include "caudal.nodes" $root) }}
- name: {{ $service.environmentPrefix }}ADVERTISED_LISTENERS
  value: {{ include "caudal.advertised" (list $root $pod) | quote }}
{{- end }}
{{- with $service.rackLabel }}
- name: {{ $service.environmentPrefix }}BROKER_RACK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['{{ . }}']
{{- end }}
{{- end }}
{{- if and (eq $name "registry") (include "caudal.hasPostgresql" $root) }}
- name: {{ $service.environmentPrefix }}DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ default (include "caudal.object" (list $root "postgresql")) $root.Values.postgresql.existingSecret }}
      key: {{ $root.Values.postgresql.secretKey }}
{{- end }}
{{- with $service.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The pod of a service: (list . "broker" service). */}}
{{- define "caudal.pod" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := index . 2 -}}
metadata:
  labels:
    {{- include "caudal.labels" (list $root $name) | nindent 4 }}
  annotations:
    checksum/config: {{ include "caudal.properties" (list $root $name) | sha256sum }}
    {{- if eq $name "broker" }}
    checksum/start: {{ $root.Files.Get "files/start-broker.sh" | sha256sum }}
    {{- end }}
    {{- with $service.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ include "caudal.serviceAccount" $root }}
  automountServiceAccountToken: {{ and $service.spark (hasPrefix "k8s:" $root.Values.spark.master) }}
  # Variables such as KAFKA_PORT would be taken for settings.
  enableServiceLinks: false
  # A broker hands its leaders over before it stops.
  terminationGracePeriodSeconds: {{ ternary 120 60 (eq $name "broker") }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ $name }}
      {{- include "caudal.image" (list $root $service) | nindent 6 }}
      {{- if eq $name "broker" }}
      command: ["tini", "--", "sh", "/etc/caudal/start-broker.sh"]
      {{- end }}
      args: [{{ $name | quote }}, "--config", "/etc/caudal/{{ $service.configFile }}"]
      {{- with include "caudal.env" . | trim }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      ports:
        - name: service
          containerPort: {{ $service.port }}
        {{- if ne (int $service.healthPort) (int $service.port) }}
        - name: metrics
          containerPort: {{ $service.healthPort }}
        {{- end }}
        {{- if $service.controllerPort }}
        - name: controller
          containerPort: {{ $service.controllerPort }}
        {{- end }}
        {{- if and $service.brokersPort $root.Values.security.enabled }}
        - name: brokers
          containerPort: {{ $service.brokersPort }}
        {{- end }}
        {{- if $service.sparkConnectPort }}
        - name: spark-connect
          containerPort: {{ $service.sparkConnectPort }}
        {{- end }}
      # Ready while it can do its work; alive while it listens: a restart would not bring back a database that is away.
      startupProbe:
        {{- include "caudal.health" (list $root $name) | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 90
      readinessProbe:
        {{- include "caudal.health" (list $root $name) | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
      livenessProbe:
        tcpSocket: {port: {{ $service.healthPort }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      resources:
        {{- toYaml $service.resources | nindent 8 }}
      securityContext:
        {{- toYaml $root.Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/caudal, readOnly: true}
        - {name: data, mountPath: {{ $service.persistence.path }}}
        - {name: tmp, mountPath: /tmp}
        {{- with include "caudal.securityMounts" (list $root $name) | trim }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "caudal.object" (list $root $name) }}
    - name: tmp
      emptyDir: {}
    {{- with include "caudal.securityVolumes" (list $root $name) | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- if eq $name "broker" }}
    {{- if not (include "caudal.hasDisk" (list $root $name)) }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- else if include "caudal.hasDisk" (list $root $name) }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ include "caudal.object" (list $root $name) }}
    {{- else }}
    - name: data
      emptyDir: {}
    {{- end }}
  {{- with $service.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $service.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $service.affinity }}
  affinity:
    {{- toYaml $service.affinity | nindent 4 }}
  {{- else if eq $name "broker" }}
  # Each on a machine of its own, and in a zone of its own, where there are enough of them.
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        {{- range $weight, $key := dict "100" "kubernetes.io/hostname" "50" "topology.kubernetes.io/zone" }}
        - weight: {{ $weight }}
          podAffinityTerm:
            topologyKey: {{ $key }}
            labelSelector:
              matchLabels:
                {{- include "caudal.selector" (list $root $name) | nindent 16 }}
        {{- end }}
  {{- end }}
{{- end -}}
