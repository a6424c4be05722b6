"""What both ends of an upload must agree on. Other FTP servers know nothing of it: they store what they are sent."""

# In the answer to FEAT: a server that verifies bundles. What it refuses with 5xx it refuses for good.
VERIFIES = "PAVOUK"
