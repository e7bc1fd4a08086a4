#!/bin/sh
# Orders, payments and deliveries of a shop over HTTP, with nothing but curl. One order is from a country that the
# shop does not deliver to, and one record is no order at all.
#
# Where the platform is: REST_PROXY_URL (http://localhost:8082) and SCHEMA_REGISTRY_URL (http://localhost:8081).
# The schemas must be registered: see README.md beside this file.
set -eu

proxy=${REST_PROXY_URL:-http://localhost:8082}
registry=${SCHEMA_REGISTRY_URL:-http://localhost:8081}

# The id of the latest schema of a topic's values.
schema_id() {
    curl --fail --silent --show-error "$registry/subjects/$1-value/versions/latest" |
        sed 's/.*"id": *\([0-9]*\).*/\1/'
}

# Send the body on stdin to a topic. The answer tells where each record went, or why it did not.
produce() {
    curl --fail-with-body --silent --show-error "$proxy/topics/$1" \
        --header "Content-Type: application/vnd.kafka.$2.v2+json" --data-binary @-
    echo
}

produce orders avro <<JSON
{"value_schema_id": $(schema_id orders), "records": [
  {"value": {"id": 1, "customer": "Ana",   "item": "canoe",  "quantity": 1, "price_cents": 64900, "country": "PT"}},
  {"value": {"id": 2, "customer": "Bruno", "item": "paddle", "quantity": 2, "price_cents": 3900,  "country": "PT"}},
  {"value": {"id": 3, "customer": "Chloé", "item": "rope",   "quantity": 3, "price_cents": 1250,  "country": "FR"}},
  {"value": {"id": 4, "customer": "Freyja", "item": "raft",  "quantity": 1, "price_cents": 89900, "country": "IS"}}
]}
JSON

produce payments protobuf <<JSON
{"value_schema_id": $(schema_id payments), "records": [
  {"value": {"order_id": 1, "method": "card",     "amount_cents": 64900}},
  {"value": {"order_id": 2, "method": "transfer", "amount_cents": 7800}},
  {"value": {"order_id": 3, "method": "card",     "amount_cents": 3750}}
]}
JSON

produce deliveries jsonschema <<JSON
{"value_schema_id": $(schema_id deliveries), "records": [
  {"value": {"order_id": 1, "carrier": "River Express", "status": "delivered"}},
  {"value": {"order_id": 2, "carrier": "River Express", "status": "sent"}}
]}
JSON

# "this is no Avro", in base64: the topic takes it, and consumers of orders refuse it.
produce orders binary <<JSON
{"records": [{"value": "dGhpcyBpcyBubyBBdnJv"}]}
JSON
