//! The programs that are connected, and those that were since this service began: identified by the kernel, beside the
//! name that each claims. For display to the owner; no decision depends on it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::watch;

/// Bound on remembered names and programs. A new one replaces the one that left first. Connected ones stay, and there
/// are fewer of them.
pub const MAX_VISITORS: usize = 256;

/// One name of one program: two programs that claim the same name are two visitors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Badge {
    name: String,
    program: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// The name that the client gives.
    pub name: String,
    /// The file name of its program, from the kernel.
    pub program: Option<String>,
    /// The process id of the latest connection.
    pub pid: Option<u32>,
    pub first_seen: SystemTime,
    /// When it last connected or left.
    pub last_seen: SystemTime,
    /// The number of open connections.
    pub connections: u32,
}

type Book = HashMap<Badge, Visitor>;

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Visitors(Arc<watch::Sender<Book>>);

impl Visitors {
    /// In no particular order.
    pub fn all(&self) -> Vec<Visitor> {
        self.0.borrow().values().cloned().collect()
    }

    /// Resolves after each change.
    pub fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }

    /// Records a connection, for as long as the visit lives.
    pub fn came(&self, name: &str, program: Option<&str>, pid: Option<u32>) -> Visit {
        let badge = Badge { name: name.to_owned(), program: program.map(str::to_owned) };
        self.0.send_modify(|book| enter(book, &badge, pid));
        Visit { visitors: self.clone(), badge, pid }
    }
}

fn enter(book: &mut Book, badge: &Badge, pid: Option<u32>) {
    let now = SystemTime::now();
    if book.len() >= MAX_VISITORS && !book.contains_key(badge) {
        // A program that takes many names replaces its own first.
        let gone = book.iter().filter(|(_, visitor)| visitor.connections == 0);
        let first = gone
            .min_by_key(|(left, visitor)| (left.program != badge.program, visitor.last_seen))
            .map(|(badge, _)| badge.clone());
        if let Some(first) = first {
            book.remove(&first);
        }
    }
    let visitor = book.entry(badge.clone()).or_insert_with(|| Visitor {
        name: badge.name.clone(),
        program: badge.program.clone(),
        pid,
        first_seen: now,
        last_seen: now,
        connections: 0,
    });
    (visitor.pid, visitor.last_seen) = (pid, now);
    visitor.connections += 1;
}

fn leave(book: &mut Book, badge: &Badge) {
    if let Some(visitor) = book.get_mut(badge) {
        visitor.connections = visitor.connections.saturating_sub(1);
        visitor.last_seen = SystemTime::now();
    }
}

#[derive(Debug)]
pub struct Changes(watch::Receiver<Book>);

impl Changes {
    /// False once the service no longer accepts connections.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Drop guard for one connection.
#[derive(Debug)]
pub struct Visit {
    visitors: Visitors,
    badge: Badge,
    pid: Option<u32>,
}

impl Visit {
    /// The client takes another name. Its past under the old name stays there.
    pub fn renamed(&mut self, name: &str) {
        if name == self.badge.name {
            return;
        }
        let before = self.badge.clone();
        name.clone_into(&mut self.badge.name);
        self.visitors.0.send_modify(|book| {
            leave(book, &before);
            enter(book, &self.badge, self.pid);
        });
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.visitors.0.send_modify(|book| leave(book, &self.badge));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(visitors: &Visitors, name: &str, program: &str) -> Option<u32> {
        let all = visitors.all();
        let found = all.iter().find(|visitor| visitor.name == name && visitor.program.as_deref() == Some(program));
        found.map(|visitor| visitor.connections)
    }

    #[test]
    fn the_same_name_from_two_programs_is_two_visitors() {
        let visitors = Visitors::default();
        let first = visitors.came("claude", Some("node"), Some(1));
        let _second = visitors.came("claude", Some("node"), Some(2));
        let _other = visitors.came("claude", Some("python3"), Some(3));
        assert_eq!((open(&visitors, "claude", "node"), open(&visitors, "claude", "python3")), (Some(2), Some(1)));
        drop(first);
        assert_eq!(open(&visitors, "claude", "node"), Some(1));
        assert_eq!(visitors.all().len(), 2);
    }

    #[test]
    fn a_new_name_is_another_visitor_and_the_one_before_has_left() {
        let visitors = Visitors::default();
        let mut visit = visitors.came("python3", Some("python3"), Some(1));
        visit.renamed("claude");
        assert_eq!((open(&visitors, "python3", "python3"), open(&visitors, "claude", "python3")), (Some(0), Some(1)));
        drop(visit);
        assert_eq!(open(&visitors, "claude", "python3"), Some(0));
    }

    #[test]
    fn a_new_one_takes_the_place_of_the_one_that_left_first_and_of_none_that_is_here() {
        let visitors = Visitors::default();
        let stays = visitors.came("stays", Some("node"), None);
        for number in 0..MAX_VISITORS {
            drop(visitors.came(&format!("guest {number}"), Some("node"), None));
        }
        assert_eq!(visitors.all().len(), MAX_VISITORS);
        assert_eq!(open(&visitors, "stays", "node"), Some(1));
        assert_eq!(open(&visitors, "guest 0", "node"), None);
        assert_eq!(open(&visitors, &format!("guest {}", MAX_VISITORS - 1), "node"), Some(0));
        drop(stays);
    }

    #[test]
    fn a_program_that_takes_many_names_pushes_out_no_other() {
        let visitors = Visitors::default();
        drop(visitors.came("claude", Some("claude"), None));
        let mut visit = visitors.came("name", Some("node"), None);
        for number in 0..2 * MAX_VISITORS {
            visit.renamed(&format!("name {number}"));
        }
        assert_eq!(visitors.all().len(), MAX_VISITORS);
        assert_eq!(open(&visitors, "claude", "claude"), Some(0));
    }

    #[tokio::test]
    async fn each_coming_and_going_is_a_change() {
        let visitors = Visitors::default();
        let mut changes = visitors.changes();
        let visit = visitors.came("a", None, None);
        assert!(changes.next().await);
        drop(visit);
        assert!(changes.next().await);
        assert_eq!(visitors.all()[0].connections, 0);
    }
}
