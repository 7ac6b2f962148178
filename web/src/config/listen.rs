//! The address to listen on, as it is written: an IP address and a port, or `localhost` and a port.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Deserializer, Serializer};

/// Reads an address as it is written.
///
/// # Errors
/// When it is none.
pub fn parse(text: &str) -> Result<SocketAddr, &'static str> {
    // Source: RFC 6761, 6.3: the name is the loopback address, whatever a resolver says.
    let port = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let local = port.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let wrong = "an address is an IP address, or localhost, and a port, such as 127.0.0.1:5984 or [::1]:5984";
    local.map_or_else(|| text.parse().map_err(|_| wrong), Ok)
}

/// Writes it with its IP address.
pub fn serialize<S: Serializer>(address: &SocketAddr, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

/// Reads it, for `#[serde(with = "listen")]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
