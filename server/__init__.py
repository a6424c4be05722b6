"""The host: URL server, FTP server, and what they keep."""
