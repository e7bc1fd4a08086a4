"""The language of SQL over topics, without Spark, Java or a cluster: tokens, syntax tree, parser, formatter, checks."""
