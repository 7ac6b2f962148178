//! What a feed is served as.

/// What a feed is served as, which is what it is counted as: the label `kind` of its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedKind {
    /// `_changes?feed=normal`.
    Normal,
    /// `_changes?feed=longpoll`.
    Longpoll,
    /// `_changes?feed=continuous`.
    Continuous,
    /// `_changes?feed=eventsource`.
    Eventsource,
    /// `_feed` as Server-Sent Events.
    Sse,
    /// `_feed` over WebSocket.
    Websocket,
    /// `_feed` as lines.
    Lines,
    /// A stream inside the program.
    Embedded,
}

impl FeedKind {
    /// Every kind.
    pub const ALL: [FeedKind; 8] = [
        FeedKind::Normal,
        FeedKind::Longpoll,
        FeedKind::Continuous,
        FeedKind::Eventsource,
        FeedKind::Sse,
        FeedKind::Websocket,
        FeedKind::Lines,
        FeedKind::Embedded,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            FeedKind::Normal => "normal",
            FeedKind::Longpoll => "longpoll",
            FeedKind::Continuous => "continuous",
            FeedKind::Eventsource => "eventsource",
            FeedKind::Sse => "sse",
            FeedKind::Websocket => "websocket",
            FeedKind::Lines => "lines",
            FeedKind::Embedded => "embedded",
        }
    }
}
