//! How a streaming answer ends that cannot go on.

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use seqtide::Error;

use crate::error::ApiError;

/// Puts a last chunk before an error, in the words of the feed's form, if it has any: an error alone cuts the
/// connection.
pub fn saying_why(
    chunks: impl Stream<Item = Result<Bytes, Error>>,
    words: impl Fn(&ApiError) -> String + 'static,
) -> impl Stream<Item = Result<Bytes, Error>> {
    chunks.flat_map(move |chunk| {
        let last = chunk.as_ref().err().map(|error| Bytes::from(words(&ApiError::from(error.clone()))));
        // An empty chunk would be the proper end.
        let said = stream::iter(last.filter(|words| !words.is_empty()).map(Ok));
        // The connection sends what it has while nothing more is ready.
        let then = stream::once(async move {
            if chunk.is_err() {
                tokio::task::yield_now().await;
            }
            chunk
        });
        said.chain(then)
    })
}
