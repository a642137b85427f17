//! A function: its waiting requests, and its sandboxes.

use std::collections::VecDeque;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The answer of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The handler's result.
    Result(Vec<u8>),
    /// The handler failed; this is the runtime's error.
    Error(Vec<u8>),
    /// The sandbox ended before it answered.
    SandboxEnded,
}

/// A request.
#[derive(Debug)]
pub struct Invocation {
    /// Its id, unique in this platform.
    pub id: String,
    /// When it arrived, in nanoseconds on the monotonic clock.
    pub arrived_ns: u64,
    /// Its body.
    pub event: Vec<u8>,
    reply: Sender<Reply>,
}

impl Invocation {
    /// A request, and the receiver of its reply.
    pub fn new(id: String, arrived_ns: u64, event: Vec<u8>) -> (Self, Receiver<Reply>) {
        let (reply, receiver) = channel();
        let invocation = Self {
            id,
            arrived_ns,
            event,
            reply,
        };
        (invocation, receiver)
    }

    fn answer(self, reply: Reply) {
        // The client may have gone; that is not an error.
        let _ = self.reply.send(reply);
    }
}

/// An event to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The process that requested it.
    pub pid: u32,
    /// The invocation's id.
    pub id: String,
    /// When it arrived, in nanoseconds on the monotonic clock.
    pub arrived_ns: u64,
    /// The request's body.
    pub body: Vec<u8>,
}

/// A sandbox: its process, and the event that it serves.
#[derive(Debug, Default)]
struct Sandbox {
    pid: Option<u32>,
    asked: bool,
    serving: Option<Invocation>,
}

#[derive(Debug)]
struct Inner {
    waiting: VecDeque<Invocation>,
    sandboxes: Vec<Sandbox>,
}

/// A function with its sandboxes, numbered from 0.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    inner: Mutex<Inner>,
    /// Notifies threads that wait for an event.
    changed: Condvar,
    /// Notifies threads that wait for a process.
    born: Condvar,
}

impl Function {
    /// A function with this many sandboxes, none of which has a process yet.
    pub fn new(name: String, sandboxes: usize) -> Self {
        let sandboxes = (0..sandboxes).map(|_| Sandbox::default()).collect();
        Self {
            name,
            inner: Mutex::new(Inner {
                waiting: VecDeque::new(),
                sandboxes,
            }),
            changed: Condvar::new(),
            born: Condvar::new(),
        }
    }

    /// Queues a request for a sandbox.
    pub fn invoke(&self, invocation: Invocation) {
        self.lock().waiting.push_back(invocation);
        self.changed.notify_one();
    }

    /// Records that the sandbox's process has started.
    pub fn started(&self, sandbox: usize, pid: u32) {
        let mut inner = self.lock();
        inner.sandboxes[sandbox] = Sandbox {
            pid: Some(pid),
            ..Sandbox::default()
        };
        self.born.notify_all();
    }

    /// Records that its process has ended, and answers the invocation that it
    /// served. Returns whether it had ever asked for an event.
    pub fn ended(&self, sandbox: usize) -> bool {
        let mut inner = self.lock();
        let sandbox = std::mem::take(&mut inner.sandboxes[sandbox]);
        if let Some(invocation) = sandbox.serving {
            invocation.answer(Reply::SandboxEnded);
        }
        // A thread that waits on behalf of that process must not take an event.
        self.changed.notify_all();
        sandbox.asked
    }

    /// The process of the sandbox. It may ask before its parent has recorded
    /// the start.
    pub fn pid(&self, sandbox: usize) -> u32 {
        let mut inner = self.lock();
        loop {
            if let Some(pid) = inner.sandboxes[sandbox].pid {
                return pid;
            }
            let woken = self.born.wait(inner);
            inner = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the next event for process `pid` of the sandbox; `None` if
    /// that process has ended meanwhile. A process that asks again without an
    /// answer has abandoned its invocation.
    pub fn next(&self, sandbox: usize, pid: u32) -> Option<Event> {
        let mut inner = self.lock();
        if inner.sandboxes[sandbox].pid == Some(pid) {
            inner.sandboxes[sandbox].asked = true;
            if let Some(invocation) = inner.sandboxes[sandbox].serving.take() {
                invocation.answer(Reply::SandboxEnded);
            }
        }
        loop {
            if inner.sandboxes[sandbox].pid != Some(pid) {
                // An event may have woken up this thread instead of another.
                self.changed.notify_one();
                return None;
            }
            if let Some(invocation) = inner.waiting.pop_front() {
                let event = Event {
                    pid,
                    id: invocation.id.clone(),
                    arrived_ns: invocation.arrived_ns,
                    body: invocation.event.clone(),
                };
                inner.sandboxes[sandbox].serving = Some(invocation);
                return Some(event);
            }
            let woken = self.changed.wait(inner);
            inner = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Answers invocation `id` of the sandbox. Returns false if it has no such
    /// invocation.
    pub fn answer(&self, sandbox: usize, id: &str, reply: Reply) -> bool {
        let serving = &mut self.lock().sandboxes[sandbox].serving;
        match serving.take_if(|invocation| invocation.id == id) {
            Some(invocation) => {
                invocation.answer(reply);
                true
            }
            None => false,
        }
    }

    /// A poisoned lock is harmless, since no operation on the state can panic.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn invocation(id: &str) -> (Invocation, Receiver<Reply>) {
        Invocation::new(id.to_string(), 7, b"{}".to_vec())
    }

    #[test]
    fn requests_are_served_in_order() {
        let function = Function::new("f".to_string(), 1);
        function.started(0, 40);
        let (first, first_reply) = invocation("1");
        let (second, second_reply) = invocation("2");
        function.invoke(first);
        function.invoke(second);
        assert_eq!(function.next(0, 40).unwrap().id, "1");
        assert!(!function.answer(0, "2", Reply::Result(vec![])));
        assert!(function.answer(0, "1", Reply::Result(b"a".to_vec())));
        assert!(!function.answer(0, "1", Reply::Result(vec![])));
        assert_eq!(first_reply.recv(), Ok(Reply::Result(b"a".to_vec())));
        assert_eq!(function.next(0, 40).unwrap().id, "2");
        assert!(function.answer(0, "2", Reply::Error(vec![])));
        assert_eq!(second_reply.recv(), Ok(Reply::Error(vec![])));
    }

    #[test]
    fn the_invocation_of_a_dead_sandbox_is_answered() {
        let function = Function::new("f".to_string(), 1);
        function.started(0, 40);
        assert!(!function.ended(0));
        function.started(0, 41);
        let (one, reply) = invocation("1");
        function.invoke(one);
        function.next(0, 41);
        assert!(function.ended(0));
        assert_eq!(reply.recv(), Ok(Reply::SandboxEnded));
    }

    #[test]
    fn a_dead_process_gets_no_event() {
        let function = Function::new("f".to_string(), 2);
        function.started(0, 40);
        function.started(1, 50);
        std::thread::scope(|scope| {
            let dead = scope.spawn(|| function.next(0, 40));
            std::thread::sleep(Duration::from_millis(20));
            function.ended(0);
            let (one, _reply) = invocation("1");
            function.invoke(one);
            assert_eq!(dead.join().unwrap(), None);
            assert_eq!(function.next(1, 50).unwrap().pid, 50);
        });
    }
}
