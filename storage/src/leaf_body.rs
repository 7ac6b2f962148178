//! The body of a leaf, at hand or where it can be read.

use crate::error::StorageError;
use crate::json::Body;
use crate::model::body_place::BodyPlace;
use crate::snapshot::Snapshot;

/// Where the body of a leaf is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeafBody {
    /// In the tables, if it was ever received.
    Stored(BodyPlace),
    /// Here.
    Here(Body),
}

impl LeafBody {
    /// Its length, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            LeafBody::Stored(place) => usize::try_from(place.bytes()).unwrap_or(usize::MAX),
            LeafBody::Here(body) => body.as_bytes().len(),
        }
    }
}

impl Snapshot<'_> {
    /// The body; `None` when it was never received or has been reclaimed.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn leaf_body(&self, body: LeafBody) -> Result<Option<Body>, StorageError> {
        match body {
            LeafBody::Stored(place) => self.body(place),
            LeafBody::Here(body) => Ok(Some(body)),
        }
    }
}
