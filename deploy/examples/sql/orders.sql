-- The topic of orders as a stream. May be run again and again.
--
--   caudal sql deploy/examples/sql/orders.sql

CREATE STREAM IF NOT EXISTS orders (
    id BIGINT,
    customer STRING,
    item STRING,
    quantity INT,
    price_cents BIGINT,
    country STRING
) WITH (KAFKA_TOPIC = 'orders', KEY_FORMAT = 'NONE', VALUE_FORMAT = 'AVRO');
