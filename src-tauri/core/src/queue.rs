//! A bounded queue that is fair between clients. Clients take turns, whatever the number of runs that each has waiting.
//! A client cannot have more waiting than its own share, nor keep the others out. The caller defines what a client is.
//! Pure.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Past the bound for all, this many more items may wait, one for each client without other waiting items. There are no
/// more clients than connections.
pub const FIRSTS: usize = 64;

/// Bounds on waiting items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    pub all: usize,
    pub per_client: usize,
}

/// An item that was refused, and the number of items waiting already: those of its own client if that client's share is
/// used up.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T> {
    pub item: T,
    pub waiting: usize,
    pub own: bool,
}

/// A queue of items `T` of clients `K`.
#[derive(Debug)]
pub struct FairQueue<K, T> {
    caps: Caps,
    len: usize,
    /// Clients with waiting items; the front one is next.
    turns: VecDeque<K>,
    waiting: HashMap<K, VecDeque<T>>,
}

impl<K: Copy + Eq + Hash, T> FairQueue<K, T> {
    pub fn new(caps: Caps) -> Self {
        Self { caps, len: 0, turns: VecDeque::new(), waiting: HashMap::new() }
    }

    /// Sets the bounds. Items that wait already stay, even past them.
    pub fn set_caps(&mut self, caps: Caps) {
        self.caps = caps;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Queues an item.
    ///
    /// # Errors
    ///
    /// Returns the item if its client's share is full, or the queue is. A full queue refuses only clients that have
    /// items waiting.
    pub fn push(&mut self, client: K, item: T) -> Result<(), Full<T>> {
        let own = self.waiting.get(&client).map_or(0, VecDeque::len);
        if own >= self.caps.per_client {
            return Err(Full { item, waiting: own, own: true });
        }
        let most = if own == 0 { self.caps.all + FIRSTS } else { self.caps.all };
        if self.len >= most {
            return Err(Full { item, waiting: self.len, own: false });
        }
        self.queue_of(client).push_back(item);
        Ok(())
    }

    /// Puts back an item that was popped but could not be served: ahead of its client's others, whatever the bounds.
    pub fn put_back(&mut self, client: K, item: T) {
        self.queue_of(client).push_front(item);
    }

    /// The next item that is ready, of the client whose turn it is. A client without a ready item keeps its turn.
    pub fn pop_where(&mut self, ready: impl Fn(&T) -> bool) -> Option<T> {
        let turn = self.turns.iter().position(|client| self.waiting[client].iter().any(&ready))?;
        let client = self.turns.remove(turn)?;
        let queue = self.waiting.get_mut(&client)?;
        let item = queue.iter().position(ready).and_then(|at| queue.remove(at))?;
        self.len -= 1;
        if queue.is_empty() {
            self.waiting.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        Some(item)
    }

    /// Removes and returns every item that matches, in no particular order.
    pub fn take_where(&mut self, mut matches: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for queue in self.waiting.values_mut() {
            let (out, stay) = std::mem::take(queue).into_iter().partition(|item| matches(item));
            *queue = stay;
            let out: VecDeque<T> = out;
            taken.extend(out);
        }
        self.waiting.retain(|_, queue| !queue.is_empty());
        self.turns.retain(|client| self.waiting.contains_key(client));
        self.len -= taken.len();
        taken
    }

    /// The items in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.turns.iter().flat_map(|client| &self.waiting[client])
    }

    /// The items in the order in which they are served, if all are ready.
    pub fn in_turn(&self) -> Vec<&T> {
        let mut clients: Vec<_> = self.turns.iter().map(|client| self.waiting[client].iter()).collect();
        let mut all = Vec::with_capacity(self.len);
        while !clients.is_empty() {
            clients.retain_mut(|items| items.next().map(|item| all.push(item)).is_some());
        }
        all
    }

    fn queue_of(&mut self, client: K) -> &mut VecDeque<T> {
        self.len += 1;
        self.waiting.entry(client).or_insert_with(|| {
            self.turns.push_back(client);
            VecDeque::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 1;
    const B: u64 = 2;
    const C: u64 = 3;

    fn caps(all: usize, per_client: usize) -> Caps {
        Caps { all, per_client }
    }

    fn queue(items: &[(u64, &'static str)]) -> FairQueue<u64, &'static str> {
        let mut queue = FairQueue::new(caps(64, 64));
        for (client, item) in items {
            queue.push(*client, *item).unwrap();
        }
        queue
    }

    fn drain(queue: &mut FairQueue<u64, &'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop_where(|_| true)).collect()
    }

    #[test]
    fn clients_take_turns_however_much_one_of_them_asks() {
        let mut queue = queue(&[(A, "a1"), (A, "a2"), (A, "a3"), (B, "b1"), (C, "c1"), (C, "c2")]);
        let foretold: Vec<_> = queue.in_turn().into_iter().copied().collect();
        assert_eq!(foretold, ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert_eq!(drain(&mut queue), ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_late_client_waits_for_one_turn_only() {
        let mut queue = queue(&[(A, "a1"), (A, "a2"), (A, "a3")]);
        assert_eq!(queue.pop_where(|_| true), Some("a1"));
        queue.push(B, "b1").unwrap();
        assert_eq!(drain(&mut queue), ["a2", "b1", "a3"]);
    }

    #[test]
    fn a_full_queue_gives_the_item_back() {
        let mut queue = FairQueue::new(caps(1, 2));
        queue.push(A, "a1").unwrap();
        assert_eq!(queue.push(A, "a2"), Err(Full { item: "a2", waiting: 1, own: false }));
        queue.put_back(A, "a0");
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn a_client_with_nothing_waiting_is_let_into_a_full_queue_once() {
        let mut queue = FairQueue::new(caps(2, 2));
        queue.push(A, "a1").unwrap();
        queue.push(A, "a2").unwrap();
        queue.push(B, "b1").unwrap();
        assert_eq!(queue.push(B, "b2"), Err(Full { item: "b2", waiting: 3, own: false }));
        for client in 10..10 + FIRSTS as u64 - 1 {
            queue.push(client, "other").unwrap();
        }
        assert_eq!(queue.push(C, "c1"), Err(Full { item: "c1", waiting: 2 + FIRSTS, own: false }));
    }

    #[test]
    fn a_client_with_its_share_waiting_is_refused_and_the_others_are_not() {
        let mut queue = FairQueue::new(caps(4, 2));
        queue.push(A, "a1").unwrap();
        queue.push(A, "a2").unwrap();
        assert_eq!(queue.push(A, "a3"), Err(Full { item: "a3", waiting: 2, own: true }));
        queue.push(B, "b1").unwrap();
        queue.push(B, "b2").unwrap();
        // An item that leaves makes room for its own client.
        assert_eq!(queue.pop_where(|_| true), Some("a1"));
        assert_eq!(queue.push(B, "b3"), Err(Full { item: "b3", waiting: 2, own: true }));
        queue.push(A, "a3").unwrap();
        assert_eq!(queue.take_where(|item| *item == "a2"), ["a2"]);
        queue.push(A, "a4").unwrap();
        assert_eq!(drain(&mut queue), ["b1", "a3", "b2", "a4"]);
    }

    #[test]
    fn lower_caps_keep_what_waits_and_refuse_what_comes() {
        let mut queue = queue(&[(A, "a1"), (A, "a2"), (B, "b1")]);
        queue.set_caps(caps(64, 1));
        assert_eq!(queue.push(A, "a3"), Err(Full { item: "a3", waiting: 2, own: true }));
        queue.put_back(A, "a0");
        queue.set_caps(caps(2, 64));
        assert_eq!(queue.push(B, "b2"), Err(Full { item: "b2", waiting: 4, own: false }));
        assert_eq!(drain(&mut queue), ["a0", "b1", "a1", "a2"]);
    }

    #[test]
    fn what_is_not_ready_holds_nobody_up_and_loses_no_turn() {
        let mut queue = queue(&[(A, "python1"), (A, "shell1"), (B, "python2"), (B, "shell2")]);
        assert_eq!(queue.pop_where(|item| item.starts_with("shell")), Some("shell1"));
        assert_eq!(queue.pop_where(|item| item.starts_with("shell")), Some("shell2"));
        assert_eq!(queue.pop_where(|item| item.starts_with("shell")), None);
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), ["python1", "python2"]);
        assert_eq!(drain(&mut queue), ["python1", "python2"]);
    }

    #[test]
    fn taking_out_keeps_the_rest_in_order() {
        let mut queue = queue(&[(A, "a1"), (A, "a2"), (B, "b1"), (C, "c1")]);
        let mut taken = queue.take_where(|item| matches!(*item, "a1" | "b1"));
        taken.sort_unstable();
        assert_eq!(taken, ["a1", "b1"]);
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&mut queue), ["a2", "c1"]);
    }
}
