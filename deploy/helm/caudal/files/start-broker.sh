# Starts the broker of a pod. The number at the end of the pod's name makes its node id: pod 0 is node 1, and so on.
# Pod 0 forms the cluster when it starts with an empty disk, and the others join it. Once there is a cluster, pod 0 joins
# it as well: a disk that was lost must not make a second cluster.
set -eu

ordinal=${POD_NAME##*-}
name=${POD_NAME%-*}

is_ready() {
  host=$1
  shift
  python -m deploy.health_check "$@" --set "metrics.listener=$HEALTH_SCHEME://$host:$HEALTH_PORT" 2>/dev/null
}

controllers=
is_new_cluster=true
if [ "$ordinal" -gt 0 ] || [ -e "$DATA_DIR/meta.properties" ]; then
  is_new_cluster=false
fi
other=0
while [ "$other" -lt "$BROKER_COUNT" ]; do
  if [ "$other" -ne "$ordinal" ]; then
    host=$name-$other.$NODES_HOST
    controllers=${controllers:+$controllers,}$host:$CONTROLLER_PORT
    if $is_new_cluster && is_ready "$host" "$@"; then
      is_new_cluster=false
    fi
  fi
  other=$((other + 1))
done

export KAFKA_NODE_ID=$((ordinal + 1))
if [ -n "$controllers" ] && ! $is_new_cluster; then
  export KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS=$controllers
fi
if [ "${KAFKA_BROKER_RACK-not asked for}" = "" ]; then
  echo "This pod has no label that names its rack. Kubernetes copies the zone of the node to it from version 1.35 on; otherwise unset services.broker.rackLabel." >&2
  exit 1
fi
exec caudal "$@"
