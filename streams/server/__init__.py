"""The service of SQL over topics: it carries out statements and keeps persistent queries running."""
