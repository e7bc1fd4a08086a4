# Gives the services the rights that they need, and creates a user for each file in /run/secrets/users, whose first line is
# the password. Run again, it changes only passwords that are new.
set -eu

caudal acl allow User:connect all --topic connect- --group connect- --transactional-id connect- --prefixed
caudal acl allow User:connect describe --group caudal-reader
caudal acl allow User:streams all --topic _streams- --group _streams- --transactional-id _streams- --prefixed
caudal acl allow User:streams describe --group caudal-reader
if [ -n "${CAUDAL_REGISTRY-}" ]; then
  caudal acl allow User:connect read,write --subject '*'
  caudal acl allow User:streams read,write --subject '*'
  caudal acl allow User:broker read --subject '*'
fi
for file in "${USERS_DIR:-/run/secrets/users}"/*; do
  [ -f "$file" ] || continue
  user=${file##*/}
  if caudal user list --output json | grep -qF "\"user\": \"$user\""; then
    caudal user passwd "$user" --password-file "$file"
  else
    caudal user create "$user" --password-file "$file"
  fi
done
if [ -n "${CAUDAL_CONNECT-}" ]; then
  # Connect keeps this rule itself: it fails until Connect runs, and Connect needs what is above.
  caudal acl allow User:prometheus describe --connect-wide
fi
