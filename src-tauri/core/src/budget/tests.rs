//! Held bytes are freed; shares and bounds hold; waiters are woken.

use tokio::time::timeout;

use super::*;

const MB: usize = 1 << 20;

fn figures(budget: &Budget) -> [usize; 3] {
    [&budget.0.coming, &budget.0.kept, &budget.0.going].map(Ledger::now)
}

#[test]
fn held_bytes_move_through_the_parts_and_are_freed_by_the_last_holder() {
    let budget = Budget::default();
    let hold = budget.account().hold();
    let other = hold.clone();
    assert!(hold.coming(16 * MB) && hold.coming(5 * MB));
    assert_eq!(figures(&budget), [5 * MB, 0, 0]);
    other.going(7 * MB);
    assert_eq!(figures(&budget), [0, 0, 7 * MB]);
    drop(other);
    hold.going(MB);
    assert_eq!(figures(&budget), [0, 0, MB]);
    drop(hold);
    assert_eq!(figures(&budget), [0, 0, 0]);
}

#[test]
fn one_program_has_its_share_and_all_share_the_total() {
    let budget = Budget::default();
    let (one, other, third) = (budget.account(), budget.account(), budget.account());
    let holds: Vec<Hold> = (0..3).map(|_| one.hold()).collect();
    assert!(holds.iter().all(|hold| hold.coming(16 * MB)));
    assert!(!one.hold().coming(1));
    let holds_of_other: Vec<Hold> = (0..3).map(|_| other.hold()).collect();
    assert!(holds_of_other.iter().all(|hold| hold.coming(16 * MB)));
    assert!(!third.hold().coming(1), "96 MB are held");
    drop(holds);
    assert!(third.hold().coming(16 * MB));
    // A refusal changes nothing.
    drop(holds_of_other);
    assert_eq!(figures(&budget), [0, 0, 0]);
}

#[test]
fn a_client_that_reads_nothing_starts_nothing_and_others_still_start() {
    let budget = Budget::default();
    let (hoarder, other) = (budget.account(), budget.account());
    let hold = hoarder.hold();
    hold.going(GOING_OF_ONE - 1);
    assert!(hoarder.hold().may_begin());
    hold.going(GOING_OF_ONE);
    assert!(!hoarder.hold().may_begin() && other.hold().may_begin());
    drop(hold);
    assert!(hoarder.hold().may_begin());
}

#[test]
fn when_many_hoard_only_clients_without_unread_replies_start() {
    let budget = Budget::default();
    let hoards: Vec<Hold> = (0..4).map(|_| budget.account().hold()).collect();
    hoards.iter().for_each(|hold| hold.going(SCARCE / 4));
    let (slow, ready) = (budget.account(), budget.account());
    let unread = slow.hold();
    unread.going(1);
    assert!(!slow.hold().may_begin() && ready.hold().may_begin());
    hoards.iter().for_each(|hold| hold.going(GOING / 4));
    assert!(!ready.hold().may_begin());
    assert!(Hold::default().may_begin(), "the owner's");
}

#[tokio::test]
async fn a_waiter_gets_room_once_it_is_freed() {
    let budget = Budget::default();
    let account = budget.account();
    let full = account.hold();
    assert!(full.coming(COMING_OF_ONE));
    let waiting = tokio::spawn({
        let account = account.clone();
        async move { account.room(MB).await }
    });
    tokio::task::yield_now().await;
    full.coming(0);
    let hold = timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert_eq!(figures(&budget), [MB, 0, 0]);
    drop(hold);
}

#[tokio::test(start_paused = true)]
async fn a_process_has_one_turn_per_interval_and_saves_none_up() {
    let (budget, every) = (Budget::default(), Duration::from_millis(20));
    let (one, other) = (budget.account(), budget.account());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    one.hold().turn(every).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    for _ in 0..5 {
        one.hold().turn(every).await;
    }
    assert!((every * 5..every * 6).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    let begun = Instant::now();
    other.hold().turn(every).await;
    Hold::default().turn(every).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn the_watcher_is_told_of_a_reply_that_was_read() {
    let budget = Budget::default();
    let hold = budget.account().hold();
    hold.going(1);
    budget.watch(true);
    drop(hold);
    timeout(Duration::from_secs(5), budget.taken()).await.unwrap();
}
