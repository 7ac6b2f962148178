//! What every request passes on its way in, and every answer on its way out. It is one layer, because each costs every
//! request an allocation or two.

use std::rc::Rc;

use actix_cors::{Cors, CorsMiddleware};
use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use futures_util::TryFutureExt;
use futures_util::future::{Either, LocalBoxFuture};

use crate::{cors, intake, request_id};

/// The layer around all handlers.
pub struct Front {
    /// Which pages may use the server.
    pub cors: Cors,
}

/// What [`Front`] puts around a service.
pub struct Fronted<S> {
    handlers: Rc<S>,
    for_pages: CorsMiddleware<Rc<S>>,
}

impl<S, B> Transform<S, ServiceRequest> for Front
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = Fronted<S>;
    type InitError = ();
    type Future = LocalBoxFuture<'static, Result<Fronted<S>, ()>>;

    fn new_transform(&self, handlers: S) -> Self::Future {
        let handlers = Rc::new(handlers);
        let for_pages = self.cors.new_transform(Rc::clone(&handlers));
        Box::pin(async { Ok(Fronted { handlers, for_pages: for_pages.await? }) })
    }
}

impl<S, B> Service<ServiceRequest> for Fronted<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self::Response, Error>>;

    forward_ready!(handlers);

    fn call(&self, mut req: ServiceRequest) -> Self::Future {
        intake::override_method(&mut req);
        let answer = if cors::is_from_page(&req) {
            Either::Left(self.for_pages.call(req))
        } else {
            Either::Right(self.handlers.call(req).map_ok(cors::for_no_page))
        };
        Box::pin(answer.map_ok(request_id::name_answer))
    }
}
