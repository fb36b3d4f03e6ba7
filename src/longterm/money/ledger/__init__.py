"""Accounts with limits that many processes share: holds, leases, periods."""
