//! Rows as bytes and nothing else, one behind the other in one piece of memory: what a feed gives of rows that it read from
//! the disk for itself, which nobody else will ask for.

use bytes::Bytes;

use crate::row::{Frame, Row, RowShape};

/// Rows as bytes alone, in order.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    bytes: Bytes,
    places: Vec<Place>,
}

/// Where a row's frame ends, and how long its JSON is.
#[derive(Debug, Clone, Copy)]
struct Place {
    end: usize,
    json_bytes: usize,
}

impl Frames {
    /// Encodes rows in a shape.
    pub(crate) fn of(rows: Vec<Row>, shape: RowShape) -> Frames {
        let mut bytes = Vec::with_capacity(rows.iter().map(|row| row.about_bytes(shape)).sum());
        let encode = |row: Row| {
            let json_bytes = row.write_frame(&mut bytes, shape);
            Place { end: bytes.len(), json_bytes }
        };
        let places = rows.into_iter().map(encode).collect();
        Frames { bytes: bytes.into(), places }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Each row's frame.
    pub fn iter(&self) -> impl Iterator<Item = Frame> {
        let starts = std::iter::once(0).chain(self.places.iter().map(|place| place.end));
        starts
            .zip(&self.places)
            .map(|(start, place)| Frame::in_bytes(self.bytes.slice(start..place.end), place.json_bytes))
    }
}
