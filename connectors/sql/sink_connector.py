"""The sink's connector."""

from connect.api.sink import SinkConnector
from connectors.sql.sink_options import SqlSinkConfig
from connectors.sql.sink_task import SqlSinkTask


class SqlSinkConnector(SinkConnector):
    """Takes records of topics to tables of PostgreSQL, MySQL, MariaDB or SQLite."""

    config_class = SqlSinkConfig
    task_class = SqlSinkTask
    aliases = (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
        "io.debezium.connector.jdbc.JdbcSinkConnector",
        "JdbcSinkConnector",
        "JdbcSink",
        "SqlSink",
    )
