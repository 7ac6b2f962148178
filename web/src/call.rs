//! A request on its way to its handler, and what handlers answer.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;

use crate::call_state::CallState;
use crate::error::ApiError;
use crate::query::Query;
use crate::request;

/// A request, its path and query decoded.
pub struct Call {
    /// It as it came.
    pub req: HttpRequest,
    /// Its body, until it is read.
    pub payload: Option<Payload>,
    /// What stands behind the `?`.
    pub query: Query,
    /// What it reaches the server through.
    pub state: CallState,
}

impl Call {
    /// It, if its method is one of these, which commas divide.
    ///
    /// # Errors
    /// 405, which names them as they stand here.
    pub fn only(self, methods: &'static str) -> Result<Call, ApiError> {
        let is_one = methods.split(',').any(|method| method == self.req.method().as_str());
        if is_one { Ok(self) } else { Err(ApiError::method_not_allowed(methods)) }
    }

    /// The body, to be read as it comes; once.
    pub fn payload(&mut self) -> Payload {
        self.payload.take().expect("a handler reads the body once")
    }

    /// Reads the body, of at most the configured size; once.
    ///
    /// # Errors
    /// As [`request::read_body`].
    pub async fn body(&mut self) -> Result<Bytes, ApiError> {
        if let Some(body) = self.state.body() {
            return Ok(body);
        }
        let payload = self.payload();
        request::read_body(&self.req, payload, &self.state.bodies, self.state.config.limits.request_bytes_max).await
    }
}

/// What a handler answers.
pub type Answer = Result<HttpResponse, ApiError>;
