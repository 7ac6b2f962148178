//! What a native feed says besides rows, as it stands on the wire.

/// The first event of a feed that begins behind `seq`, when everything is there.
pub fn open(seq: u64, update_seq: u64) -> String {
    beating(seq, update_seq, 30_000)
}

/// The same of one that names its heartbeat, in milliseconds.
pub fn beating(seq: u64, update_seq: u64, heartbeat: u64) -> String {
    format!(
        "{{\"event\":\"opened\",\"seq\":{seq},\"oldest_seq\":0,\"update_seq\":{update_seq},\"heartbeat\":{heartbeat}}}"
    )
}

/// The lines of a feed but its heartbeats: on a slow machine they come between any two.
pub fn without_heartbeats(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("{\"event\":\"heartbeat\"")).collect()
}

/// Everything up to `seq` has been given.
pub fn caught_up(seq: u64) -> String {
    format!("{{\"event\":\"caught-up\",\"seq\":{seq}}}")
}

/// The last event of a feed that ends at `seq`.
pub fn end(seq: u64, reason: &str) -> String {
    format!("{{\"event\":\"end\",\"seq\":{seq},\"reason\":\"{reason}\"}}")
}
