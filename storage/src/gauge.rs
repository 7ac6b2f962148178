//! What a store measures of itself, for whoever watches it.

/// A store's figures of now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauge {
    /// Bytes of the pages that tables need.
    pub used_bytes: usize,
    /// Bytes of the pages that were ever in use: those that are not needed can be used again.
    pub end_bytes: usize,
    /// The address space reserved, in bytes.
    pub map_bytes: usize,
    /// Bytes of one page.
    pub page_bytes: usize,
}
