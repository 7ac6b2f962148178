//! Endpoints that CouchDB has and Seqtide has not: they are told from what nobody has.

/// Those of databases.
const OF_DATABASES: [&str; 11] = [
    "_auto_purge",
    "_compact/indexes",
    "_explain",
    "_find",
    "_index",
    "_partition",
    "_purged_infos_limit",
    "_security",
    "_shards",
    "_sync_shards",
    "_view_cleanup",
];

/// Those of design documents, which have none that are built.
const OF_DESIGN_DOCUMENTS: [&str; 10] =
    ["_info", "_list", "_nouveau", "_nouveau_info", "_rewrite", "_search", "_search_info", "_show", "_update", "_view"];

/// Those of the server.
const OF_THE_SERVER: [&str; 6] = ["_cluster_setup", "_membership", "_node", "_replicate", "_reshard", "_scheduler"];

/// Whether it is one of CouchDB's databases that is not built.
pub fn is_of_database(name: &str) -> bool {
    OF_DATABASES.contains(&name)
}

/// Whether it is one of CouchDB's design documents.
pub fn is_of_design(name: &str) -> bool {
    OF_DESIGN_DOCUMENTS.contains(&name)
}

/// Whether it is one of CouchDB's server that is not built, with all below it.
pub fn is_of_server(name: &str) -> bool {
    OF_THE_SERVER.contains(&name)
}
