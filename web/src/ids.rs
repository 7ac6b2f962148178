//! Names that the server makes up.

/// A document id nobody else makes: 32 hex digits, those made one after the other close together in the order of ids.
pub fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
