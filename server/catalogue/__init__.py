"""What is in Pages/: which bundle holds which page. Only an index: it can be rebuilt from the bundles.

    catalogue  the façade: add, look up, reconcile with the files, rebuild
    database   opens the SQLite file, makes it anew when it is damaged (schema.sql)
    rows       manifests as rows, checked
    apart      leaves out pages that do not count
    stored     walks through the files of Pages/
    writer     one thread that writes for all FTP sessions

Several processes may read while ftpServer, the only writer, adds.
"""

from server.catalogue.catalogue import Catalogue, Changes, Counts
from server.catalogue.database import FILE_NAME, CatalogueError, CorruptCatalogue
from server.catalogue.rows import StoredBundle, StoredPage
from server.catalogue.writer import CatalogueWriter

__all__ = [
    "FILE_NAME",
    "Catalogue",
    "CatalogueError",
    "CatalogueWriter",
    "Changes",
    "CorruptCatalogue",
    "Counts",
    "StoredBundle",
    "StoredPage",
]
