//! Which web pages may read our answers: the origins CORS allows.

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The setting `cors_origins`: a list of origins or, when none is listed, every origin on a loopback host.
///
/// Source: RFC 6454 (an origin is a scheme, a host and a port) and the Fetch standard (no `*` with credentials).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CorsOrigins {
    listed: Vec<String>,
}

/// A text that cannot be listed as an origin.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum OriginError {
    /// `*` was listed.
    #[error("\"*\" is refused, because requests carry credentials and any web page could use them; list the origins")]
    Wildcard,
    /// Something else than scheme, host and perhaps port was listed.
    #[error("{0:?} is not an origin such as \"https://app.example.org\" or \"http://192.168.1.7:8080\"")]
    NotAnOrigin(String),
}

impl CorsOrigins {
    /// Whether a request with this `Origin` header may have its answer read.
    pub fn allows(&self, origin: &str) -> bool {
        if self.listed.is_empty() {
            return is_loopback(origin);
        }
        parse(origin).is_ok_and(|origin| self.listed.contains(&origin))
    }
}

impl TryFrom<Vec<String>> for CorsOrigins {
    type Error = OriginError;

    /// Empty texts are passed over, so that `--cors-origins ''` and an empty variable say "none listed".
    fn try_from(texts: Vec<String>) -> Result<CorsOrigins, OriginError> {
        let given = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        Ok(CorsOrigins { listed: given.map(parse).collect::<Result<_, _>>()? })
    }
}

impl From<CorsOrigins> for Vec<String> {
    fn from(origins: CorsOrigins) -> Vec<String> {
        origins.listed
    }
}

/// An origin in the one form browsers send: lower case, without the scheme's own port, without a slash at the end.
fn parse(text: &str) -> Result<String, OriginError> {
    if text == "*" {
        return Err(OriginError::Wildcard);
    }
    let refused = || OriginError::NotAnOrigin(text.to_owned());
    let url = Url::parse(text).map_err(|_| refused())?;
    let bare = url.has_host()
        && !text.contains('*')
        && url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    if bare { Ok(url.as_str().trim_end_matches('/').to_owned()) } else { Err(refused()) }
}

fn is_loopback(origin: &str) -> bool {
    let Ok(url) = parse(origin).and_then(|text| Url::parse(&text).map_err(|_| OriginError::NotAnOrigin(text))) else {
        return false;
    };
    match url.host() {
        // Source: RFC 6761, 6.3.
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(texts: &[&str]) -> Result<CorsOrigins, OriginError> {
        texts.iter().map(|text| text.to_string()).collect::<Vec<_>>().try_into()
    }

    #[test]
    fn none_listed_allows_loopback_on_any_port() {
        let origins = listed(&[]).unwrap();
        for origin in ["http://localhost", "https://localhost:8443", "http://127.0.0.1:3000", "http://127.8.9.1"] {
            assert!(origins.allows(origin), "{origin}");
        }
        assert!(origins.allows("http://app.localhost:3000"));
        assert!(origins.allows("http://[::1]:5173"));
    }

    #[test]
    fn none_listed_refuses_every_other_host() {
        let origins = listed(&[""]).unwrap();
        let foreign = ["http://localhost.example.org", "http://127.0.0.1.example.org", "http://user@localhost"];
        for origin in foreign.into_iter().chain([
            "http://10.0.0.1",
            "http://notlocalhost",
            "http://[::2]",
            "null",
            "",
            "localhost",
            "*",
        ]) {
            assert!(!origins.allows(origin), "{origin}");
        }
    }

    #[test]
    fn a_list_allows_what_it_lists_and_no_loopback() {
        let origins = listed(&["https://App.example.org:443/", "http://10.0.0.7:8080"]).unwrap();
        assert!(origins.allows("https://app.example.org") && origins.allows("http://10.0.0.7:8080"));
        for origin in ["http://app.example.org", "https://app.example.org:444", "http://localhost", "null"] {
            assert!(!origins.allows(origin), "{origin}");
        }
    }

    #[test]
    fn a_wildcard_is_refused_with_the_reason() {
        assert_eq!(listed(&["*"]), Err(OriginError::Wildcard));
        assert!(OriginError::Wildcard.to_string().contains("credentials"));
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in ["null", "example.org", "https://example.org/app", "https://*.example.org", "https://a@example.org"]
        {
            assert_eq!(listed(&[text]), Err(OriginError::NotAnOrigin(text.to_owned())));
        }
    }
}
