"""The command crawl: urlServer, ftpServer and clientCrawler together on one machine, for one crawl."""
