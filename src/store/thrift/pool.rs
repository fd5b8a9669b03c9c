//! A bounded number of connections, used on blocking threads.

use super::fault::{Declared, classify};
use super::socket::Gateway;
use crate::error::{Error, ErrorKind, Result};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// A client with its socket.
pub(in crate::store) struct Connection<C> {
    pub(in crate::store) client: C,
    pub(in crate::store) socket: TcpStream,
}

impl<C> Connection<C> {
    /// Whether the other side has not closed it meanwhile: gateways close what is idle for a minute, and restart.
    fn is_open(&self) -> bool {
        let mut byte = [0];
        let peeked = self.socket.set_nonblocking(true).and_then(|()| self.socket.peek(&mut byte));
        // A byte nobody asked for is no better than an end.
        let waits = matches!(peeked, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock);
        waits && self.socket.set_nonblocking(false).is_ok()
    }
}

type Open<C> = dyn Fn(&Gateway) -> Result<Connection<C>> + Send + Sync;

/// Connections to one gateway.
pub(in crate::store) struct Pool<C>(Arc<Shared<C>>);

struct Shared<C> {
    gateway: Gateway,
    open: Box<Open<C>>,
    declared: Declared,
    idle: Mutex<Vec<Connection<C>>>,
    permits: Arc<Semaphore>,
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Send + 'static> Pool<C> {
    pub(in crate::store) fn new(
        gateway: Gateway,
        open: impl Fn(&Gateway) -> Result<Connection<C>> + Send + Sync + 'static,
        declared: Declared,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(gateway.connections.max(1)));
        Self(Arc::new(Shared { gateway, open: Box::new(open), declared, idle: Mutex::new(Vec::new()), permits }))
    }

    pub(in crate::store) fn gateway(&self) -> &Gateway {
        &self.0.gateway
    }

    /// Runs a call on a connection of its own. A caller that drops the future doesn't learn what came of it.
    ///
    /// # Errors
    /// Those of [`classify`], with the gateway's address.
    pub(in crate::store) async fn call<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut C) -> thrift::Result<T> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let closed = |e| Error::new(ErrorKind::Internal, "the pool of connections is closed").with_source(e);
        let permit = Arc::clone(&shared.permits).acquire_owned().await.map_err(closed)?;
        let task = tokio::task::spawn_blocking(move || {
            let result = shared.run(work);
            drop(permit);
            result.map_err(|e| e.within(format!("gateway {}", shared.gateway.address)))
        });
        task.await.map_err(|e| Error::new(ErrorKind::Internal, "a call to a gateway ended early").with_source(e))?
    }
}

impl<C> Shared<C> {
    fn run<T>(&self, work: impl FnOnce(&mut C) -> thrift::Result<T>) -> Result<T> {
        let mut connection = match self.take() {
            Some(connection) => connection,
            None => (self.open)(&self.gateway)?,
        };
        let reply = work(&mut connection.client);
        // After anything else the next reply may not be the next request's.
        if matches!(&reply, Ok(_) | Err(thrift::Error::User(_) | thrift::Error::Application(_))) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        reply.map_err(|e| classify(e, &self.gateway, self.declared))
    }

    fn take(&self) -> Option<Connection<C>> {
        loop {
            let connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if connection.is_open() {
                return Some(connection);
            }
        }
    }
}
