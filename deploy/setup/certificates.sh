#!/bin/sh
# Makes a certificate authority, and a certificate for each service and for the administrator:
#
#   sh deploy/setup/certificates.sh FOLDER [HOST...]
#
# Clients trust FOLDER/ca.crt. FOLDER/certificates/NAME.pem has a key and its certificate, for the container NAME,
# localhost and every HOST. What is there stays: for a new certificate, remove the old one and run this again.
# FOLDER/ca.key signs new certificates; keep it where no service runs.
set -eu
umask 077

folder=${1:?give the folder for the certificates}
shift
mkdir -p "$folder/certificates"
new_key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

if [ ! -e "$folder/ca.key" ]; then
  # shellcheck disable=SC2086 # several words
  openssl req -x509 $new_key -days 3650 -subj "/CN=Caudal" \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$folder/ca.key" -out "$folder/ca.crt"
  chmod 644 "$folder/ca.crt"
fi 2>/dev/null

for name in broker registry rest-proxy connect streams prometheus admin; do
  file=$folder/certificates/$name.pem
  [ ! -e "$file" ] || continue
  names="DNS:$name,DNS:localhost,IP:127.0.0.1"
  [ "$name" != broker ] || names="$names,DNS:broker-2,DNS:broker-3"
  for host in "$@"; do
    case $host in
      *[!0-9.]*) names="$names,DNS:$host" ;;
      *) names="$names,IP:$host" ;;
    esac
  done
  cat >"$file.extensions" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
subjectAltName=$names
END
  # shellcheck disable=SC2086 # several words
  openssl req $new_key -subj "/CN=$name" -keyout "$file.key" -out "$file.csr" 2>/dev/null
  openssl x509 -req -in "$file.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial -days 365 \
    -extfile "$file.extensions" -out "$file.crt" 2>/dev/null
  cat "$file.key" "$file.crt" >"$file.new"
  mv "$file.new" "$file"
  rm "$file.extensions" "$file.key" "$file.csr" "$file.crt"
  echo "$file"
done
