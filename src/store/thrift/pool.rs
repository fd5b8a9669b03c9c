//! A bounded number of connections to the gateways of one cluster, used on blocking threads.

use super::breaker::Breaker;
use super::fault::{Declared, classify};
use super::socket::Gateway;
use crate::error::{Action, Error, ErrorKind, Result};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
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

/// Connections to the gateways of one cluster. Calls go to each in turn, but not to one that is down.
pub(in crate::store) struct Pool<C>(Arc<Shared<C>>);

/// Where a scanner is open: at one process of one gateway.
///
/// A gateway counts its scanners anew when it is started again, and a number from before may be another one's. A connection
/// that was open when the scanner was opened, and still is, leads to the same process; a later one may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Place {
    member: usize,
    /// The last connection opened by then.
    connection: u64,
}

impl Place {
    fn any(member: usize) -> Self {
        Self { member, connection: u64::MAX }
    }
}

struct Shared<C> {
    members: Vec<Arc<Member<C>>>,
    turn: AtomicUsize,
}

struct Member<C> {
    gateway: Gateway,
    open: Arc<Open<C>>,
    declared: Declared,
    /// How many connections were opened.
    opened: AtomicU64,
    /// Connections with their numbers.
    idle: Mutex<Vec<(u64, Connection<C>)>>,
    permits: Arc<Semaphore>,
    breaker: Breaker,
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Send + 'static> Pool<C> {
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) without gateways.
    pub(in crate::store) fn new(
        gateways: Vec<Gateway>,
        open: impl Fn(&Gateway) -> Result<Connection<C>> + Send + Sync + 'static,
        declared: Declared,
    ) -> Result<Self> {
        if gateways.is_empty() {
            return Err(Error::invalid("expected the address of a Thrift gateway, found none"));
        }
        let open: Arc<Open<C>> = Arc::new(open);
        let member = |gateway: Gateway| {
            Arc::new(Member {
                permits: Arc::new(Semaphore::new(gateway.connections.max(1))),
                breaker: Breaker::new(&gateway.address),
                open: Arc::clone(&open),
                opened: AtomicU64::new(0),
                idle: Mutex::default(),
                declared,
                gateway,
            })
        };
        let members = gateways.into_iter().map(member).collect();
        Ok(Self(Arc::new(Shared { members, turn: AtomicUsize::new(0) })))
    }

    /// The gateways, with the place of each.
    fn gateways(&self) -> impl Iterator<Item = (Place, &Gateway)> {
        self.0.members.iter().enumerate().map(|(i, member)| (Place::any(i), &member.gateway))
    }

    /// Asks each gateway whether it is of the right kind; one that doesn't answer is left out as long as another does. The names
    /// are those of the right kind, of the other, and of the other's store.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a gateway of another kind, [`Unreachable`](ErrorKind::Unreachable) when
    /// nobody answers, and those of the call.
    pub(in crate::store) async fn expect_all(
        &self,
        is_it: fn(&mut C) -> thrift::Result<bool>,
        [expected, other, other_store]: [&str; 3],
    ) -> Result<()> {
        let (mut answered, mut unreachable) = (false, None);
        for (place, gateway) in self.gateways() {
            match self.call_at(place, is_it).await {
                Ok(true) => answered = true,
                Ok(false) => {
                    return Err(Error::invalid(format!(
                        "expected a {expected} gateway at {}, found one of {other}; choose the store {other_store}, or start \
                         the other gateway",
                        gateway.address
                    )));
                }
                Err(e) if e.kind() == ErrorKind::Unreachable => unreachable = Some(e),
                Err(e) => return Err(e),
            }
        }
        unreachable.filter(|_| !answered).map_or(Ok(()), Err)
    }

    /// How many calls can be under way at once.
    pub(in crate::store) fn connections(&self) -> usize {
        self.0.members.iter().map(|m| m.gateway.connections.max(1)).sum()
    }

    /// Runs a call at one of the gateways, on a connection of its own. A caller that drops the future doesn't learn what
    /// came of it.
    ///
    /// # Errors
    /// Those of [`classify`], with the gateway's address; [`Unreachable`](ErrorKind::Unreachable) when all are down.
    pub(in crate::store) async fn call<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut C) -> thrift::Result<T> + Send + 'static,
    {
        self.call_at(Place::any(self.next()), work).await
    }

    /// Runs a call that opens something there, which further calls use.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(in crate::store) async fn open<T, F>(&self, work: F) -> Result<(Place, T)>
    where
        T: Send + 'static,
        F: FnOnce(&mut C) -> thrift::Result<T> + Send + 'static,
    {
        let member = self.next();
        let opened = self.call_at(Place::any(member), work).await?;
        let connection = self.0.members[member].opened.load(Ordering::SeqCst);
        Ok((Place { member, connection }, opened))
    }

    /// The gateway whose turn it is.
    fn next(&self) -> usize {
        let members = &self.0.members;
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        let order = (0..members.len()).map(|i| (turn.wrapping_add(i)) % members.len());
        // Where all are down, one that is asked again first.
        let now = Instant::now();
        order.min_by_key(|i| members[*i].breaker.down_for(now)).unwrap_or(0)
    }

    /// Runs a call at one gateway.
    ///
    /// # Errors
    /// As [`Self::call`]; an error that can be tried again, with something opened anew, when the connections from then are gone
    /// or busy.
    pub(in crate::store) async fn call_at<T, F>(&self, place: Place, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut C) -> thrift::Result<T> + Send + 'static,
    {
        let member = Arc::clone(&self.0.members[place.member]);
        let closed = |e| Error::new(ErrorKind::Internal, "the pool of connections is closed").with_source(e);
        let permit = Arc::clone(&member.permits).acquire_owned().await.map_err(closed)?;
        let task = tokio::task::spawn_blocking(move || {
            let result = member.run(place.connection, work);
            drop(permit);
            result.map_err(|e| e.within(format!("gateway {}", member.gateway.address)))
        });
        task.await.map_err(|e| Error::new(ErrorKind::Internal, "a call to a gateway ended early").with_source(e))?
    }
}

impl<C> Member<C> {
    fn run<T>(&self, latest: u64, work: impl FnOnce(&mut C) -> thrift::Result<T>) -> Result<T> {
        self.breaker.pass(Instant::now(), self.gateway.connect_timeout)?;
        let (number, mut connection) = match self.take(latest) {
            Some(taken) => taken,
            None if latest < u64::MAX => {
                let message = "expected a connection from when the scanner was opened, found none";
                return Err(Error::new(ErrorKind::Store, message).with_action(Action::Retry));
            }
            None => {
                let connection = (self.open)(&self.gateway).inspect_err(|e| self.failed(e))?;
                (self.opened.fetch_add(1, Ordering::SeqCst) + 1, connection)
            }
        };
        let reply = work(&mut connection.client);
        if matches!(&reply, Ok(_) | Err(thrift::Error::User(_) | thrift::Error::Application(_))) {
            self.breaker.succeeded();
            self.idle().push((number, connection));
            return reply.map_err(|e| classify(e, &self.gateway, self.declared));
        }
        // After anything else the next reply may not be the next request's.
        let result = reply.map_err(|e| classify(e, &self.gateway, self.declared));
        result.inspect_err(|e| self.failed(e))
    }

    fn failed(&self, error: &Error) {
        self.breaker.failed(Instant::now(), error);
        self.idle().clear();
    }

    /// An idle connection, one of the first `latest`.
    fn take(&self, latest: u64) -> Option<(u64, Connection<C>)> {
        loop {
            let mut idle = self.idle();
            let last = idle.iter().rposition(|(number, _)| *number <= latest)?;
            let taken = idle.remove(last);
            drop(idle);
            if taken.1.is_open() {
                return Some(taken);
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Connection<C>)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
