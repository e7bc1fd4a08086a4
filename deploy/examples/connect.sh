#!/bin/sh
# Creates connectors from files beside this one, or gives them that configuration again:
#
#   sh connect.sh                                    # all of connectors/
#   sh connect.sh connectors/orders-to-sql.json
#
# The files name the addresses and the folder of a platform that was started with `caudal up`. Is yours elsewhere? Say
# so with SCHEMA_REGISTRY_URL (http://localhost:8081), CAUDAL_CONNECT (http://localhost:8083) and CAUDAL_DATA
# (caudal-platform). CAUDAL names the command, when it is not on your PATH.
set -eu

registry=${SCHEMA_REGISTRY_URL:-http://localhost:8081}
data=${CAUDAL_DATA:-caudal-platform}
[ $# -gt 0 ] || set -- "$(dirname "$0")"/connectors/*.json

for file in "$@"; do
    sed -e "s,http://localhost:8081,$registry,g" -e "s,caudal-platform,$data,g" "$file" |
        ${CAUDAL:-caudal} connector create - --replace
done
