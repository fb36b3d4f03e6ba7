#!/bin/sh
# Runs once, when the database is created: the server's role owns its own database, and is no superuser.
set -e
psql --username postgres --set password="$LONGTERM_PASSWORD" <<'SQL'
CREATE ROLE longterm LOGIN PASSWORD :'password';
CREATE DATABASE longterm OWNER longterm;
SQL
