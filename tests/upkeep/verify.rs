//! `verify`: what is made wrong by hand is found exactly, and repaired exactly; what changes meanwhile raises no alarm.

use crate::world::{INDEX, STATE, TABLE, World};
use bytes::Bytes;
use sideindex::model::{Cell, CellKind, MAX_TIMESTAMP};
use sideindex::schema::META_TABLE;
use sideindex::store::{Read, ReadSpec, Scan};
use sideindex::verify::{Class, Report};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// The classes of findings with their entries.
fn found(report: &Report) -> BTreeSet<(Class, Vec<u8>)> {
    let found: BTreeSet<_> = report.findings.iter().map(|f| (f.class, f.entry.to_vec())).collect();
    assert_eq!(found.len() as u64, report.wrong(), "{report:?}");
    found
}

/// The entries of one class, in order.
fn of(report: &Report, class: Class) -> Vec<Bytes> {
    let of: BTreeSet<Bytes> = report.findings.iter().filter(|f| f.class == class).map(|f| f.entry.clone()).collect();
    of.into_iter().collect()
}

pub async fn fine(world: &World, what: &str) {
    let report = world.verify().await;
    assert_eq!((report.wrong(), report.pending), (0, 0), "{what}: {:?}", report.findings);
    assert_eq!(world.brute_force().await, [const { Vec::<Bytes>::new() }; 3], "{what}");
}

async fn small() -> World {
    let world = World::new().await;
    world.put("r1", &[("colour", "red".into()), ("size", 1.into()), ("tags", vec!["a", "b"].into())]).await;
    world.put("r2", &[("colour", "blue".into()), ("size", 2.into())]).await;
    world.put("r3", &[("tags", vec!["a"].into())]).await;
    world.apply().await;
    fine(&world, "at first").await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_wrong_is_reported_exactly_and_repaired_exactly() {
    let world = small().await;
    let now = sideindex::clock::now();
    let red = world.key("by_colour", &["red".into()], "r1").await;
    world.hide_entry(&red, now + 5_000).await;
    let pair = world.key("tags_colour", &["a".into(), "red".into()], "r1").await;
    world.hide_entry(&pair, now).await;
    let green = world.key("by_colour", &["green".into()], "r2").await;
    world.write_entry(&green, now, &[1, 0]).await;
    let gone = world.key("by_size", &[7.into()], "r9").await;
    world.write_entry(&gone, 5, &[1, 0]).await;
    let future = world.key("by_size", &[9.into()], "r2").await;
    world.write_entry(&future, MAX_TIMESTAMP, &[1, 0]).await;
    let damaged = world.key("by_size", &[2.into()], "r2").await;
    world.write_entry(&damaged, now + 20, &[77]).await;
    let mut salted = world.key("by_tags", &["a".into()], "r3").await.to_vec();
    salted[0] ^= 1;
    world.write_entry(&salted, now, &[1, 0]).await;
    let stray = [0, 0xEE, 0xEE, 0x10, 1, b'r'];
    world.write_entry(&stray, now, &[1, 0]).await;
    let mut cut = world.key("by_tags", &["a".into()], "").await.to_vec();
    cut.truncate(4);
    world.write_entry(&cut, now, &[1, 0]).await;
    let covering = world.key_of("rich", "r1").await;
    world.write_entry(&covering, now, &[1, 0, 0x05, 0x05]).await;
    // Legitimate: what is disputed is checked by whoever meets it.
    let disputed = world.key("by_colour", &["pink".into()], "r3").await;
    world.write_entry(&disputed, now, &[1, 1]).await;

    let expected = BTreeSet::from([
        (Class::Missing, red.to_vec()),
        (Class::Missing, pair.to_vec()),
        (Class::Outdated, green.to_vec()),
        (Class::Outdated, gone.to_vec()),
        (Class::Outdated, future.to_vec()),
        (Class::Outdated, salted),
        (Class::Undecodable, damaged.to_vec()),
        (Class::Undecodable, cut),
        (Class::UnknownDefinition, stray.to_vec()),
        (Class::WrongCovered, covering.to_vec()),
    ]);
    let report = world.verify().await;
    assert_eq!(found(&report), expected);
    assert_eq!((report.unknown, report.indexes["by_colour"].disputed), (1, 1));
    assert_eq!(report.indexes["by_colour"].missing, 1);
    let named = report.findings.iter().find(|f| f.entry == green).unwrap();
    assert_eq!((named.row.as_deref(), named.values.as_slice()), (Some(&b"r2"[..]), &["green".to_owned()][..]));

    let report = world.repair().await;
    assert_eq!(found(&report), expected);
    assert_eq!((report.repaired, report.changing, report.unrepairable), (expected.len() as u64, 0, 0));
    fine(&world, "repaired").await;
    // Nothing is left of the promises, and only what was disputed, or is out of reach, is disputed.
    assert!(
        world
            .store
            .scan(META_TABLE, Scan::prefix(b"recheck/"))
            .await
            .unwrap()
            .next_page()
            .await
            .unwrap()
            .rows
            .is_empty()
    );
    assert_eq!(world.disputed().await, BTreeSet::from([disputed, future.clone()]));

    // The repaired rows go on as ever.
    world.put("r1", &[("colour", "blue".into())]).await;
    world.put("r2", &[("colour", "green".into()), ("size", 9.into())]).await;
    world.apply().await;
    fine(&world, "after a change").await;
    assert!(world.entries().await.contains_key(&green) && world.entries().await.contains_key(&future));
    world.put("r1", &[("colour", "red".into())]).await;
    world.put("r2", &[("size", 2.into())]).await;
    world.apply().await;
    fine(&world, "after a change back").await;
    assert!(world.entries().await.contains_key(&red));
}

/// What happens to a base row without an event is nobody's doing but found, and lost state is made up for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_state_and_changes_without_an_event_are_repaired() {
    let world = small().await;
    for row in ["r1", "r2"] {
        let at = sideindex::clock::now() + 3;
        world.mutate(STATE, row.as_bytes(), Cell::delete(CellKind::DeleteFamily, "s", "", at)).await;
    }
    let blue = world.key("by_colour", &["blue".into()], "r2").await;
    world.hide_entry(&blue, sideindex::clock::now()).await;
    assert_eq!(world.repair().await.repaired, 1);
    fine(&world, "lost state").await;
    world.put("r2", &[("colour", "red".into())]).await;
    world.apply().await;
    fine(&world, "a change after lost state").await;

    // A change that the log never had, as if a TTL had uncovered an older version: it is taken for applied.
    let at = sideindex::clock::now() + 10;
    world.mutate(TABLE, b"r2", Cell::put("a", "colour", at, "grey")).await;
    world.follow_past_the_log().await;
    let [missing, outdated, _] = world.brute_force().await;
    assert!(missing.contains(&world.key("by_colour", &["grey".into()], "r2").await));
    let report = world.repair().await;
    assert_eq!((of(&report, Class::Missing), of(&report, Class::Outdated)), (missing, outdated));
    assert_eq!(report.repaired, report.wrong());
    fine(&world, "an unseen change").await;
}

/// Random damage, over seeds: the report is the brute force's, the repair leaves none, and later events do no harm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_damage_is_found_and_repaired() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = World::new().await;
        for _ in 0..rng.usize(1..60) {
            world.change(&mut rng, 8).await;
            if rng.u8(0..6) == 0 {
                world.apply().await;
            }
        }
        world.apply().await;
        fine(&world, &format!("seed {seed}, before")).await;
        let mut hit = BTreeSet::new();
        for _ in 0..rng.usize(1..12) {
            damage(&world, &mut rng, &mut hit).await;
        }
        let brute_force = world.brute_force().await;
        let report = world.repair().await;
        let classes = [Class::Missing, Class::Outdated, Class::WrongCovered];
        assert_eq!(classes.map(|class| of(&report, class)), brute_force, "seed {seed}");
        assert_eq!(report.repaired, report.wrong(), "seed {seed}: {report:?}");
        fine(&world, &format!("seed {seed}, repaired")).await;
        for _ in 0..20 {
            world.change(&mut rng, 8).await;
            if rng.bool() {
                world.apply().await;
            }
        }
        world.apply().await;
        fine(&world, &format!("seed {seed}, after more changes")).await;
    }
}

/// Makes something wrong, somewhere, no entry twice: a marker under an entry that was written anew shows only once that entry
/// goes and comes back.
async fn damage(world: &World, rng: &mut fastrand::Rng, hit: &mut BTreeSet<Bytes>) {
    let at = sideindex::clock::now() + rng.i64(-2..100);
    let row = format!("r{}", rng.u32(0..8));
    let expected = world.expected().await;
    // True ones are hidden: nobody misses the others yet.
    let hidden = rng.choice(expected.keys().cloned());
    let kind = rng.u8(0..7);
    let key = match (kind, hidden) {
        (0..=2 | 6, Some(key)) => key,
        (3, _) => world.key("tags_colour", &["t1".into(), "red".into()], &row).await,
        (4, _) => world.key("by_size", &[rng.i64(-3..3).into()], &row).await,
        _ => world.key("by_colour", &["red".into()], &row).await,
    };
    if !hit.insert(key.clone()) || expected.contains_key(&key) == (3..=5).contains(&kind) {
        return;
    }
    match kind {
        0 | 1 => world.hide_entry(&key, at).await,
        // Lost state shows only with an entry.
        2 => {
            let row = &key[key.iter().rposition(|b| *b == b'r').unwrap()..];
            world.mutate(STATE, row, Cell::delete(CellKind::DeleteFamily, "s", "", at)).await;
            world.hide_entry(&key, at + 1_000).await;
        }
        6 => world.write_entry(&key, at, &[1, 0, 0x10, 1]).await,
        3 | 4 => world.write_entry(&key, at, &[1, 0]).await,
        _ => world.write_entry(&key, at, &[1, rng.u8(0..2)]).await,
    }
}

/// Writers and a follower at work while the table is verified again and again: no false alarm, and repairs in their midst leave
/// nothing wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_meanwhile_are_no_false_alarm() {
    let world = std::sync::Arc::new(World::new().await);
    let over = std::sync::Arc::new(AtomicBool::new(false));
    let mut follower = world.follower().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let following = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        follower.follow(stopped, |_| {}).await.unwrap()
    });
    let writing = {
        let (world, over) = (std::sync::Arc::clone(&world), std::sync::Arc::clone(&over));
        tokio::spawn(async move {
            let mut rng = fastrand::Rng::with_seed(7);
            for _ in 0..1_500 {
                world.change(&mut rng, 40).await;
            }
            over.store(true, Ordering::SeqCst);
        })
    };
    let (mut verified, mut looked_at) = (0, 0);
    while !over.load(Ordering::SeqCst) {
        let report = world.verify().await;
        assert_eq!(report.wrong(), 0, "a false alarm: {report:?}");
        verified += 1;
        looked_at += report.rows - report.pending.min(report.rows);
    }
    writing.await.unwrap();
    assert!(verified > 3 && looked_at > 0, "{verified} verifications of {looked_at} rows prove nothing");

    // The same with damage and repairs.
    over.store(false, Ordering::SeqCst);
    let writing = {
        let (world, over) = (std::sync::Arc::clone(&world), std::sync::Arc::clone(&over));
        tokio::spawn(async move {
            let mut rng = fastrand::Rng::with_seed(8);
            for _ in 0..600 {
                world.change(&mut rng, 40).await;
            }
            over.store(true, Ordering::SeqCst);
        })
    };
    let mut rng = fastrand::Rng::with_seed(9);
    let (mut repaired, mut hit) = (0, BTreeSet::new());
    while !over.load(Ordering::SeqCst) {
        damage(&world, &mut rng, &mut hit).await;
        repaired += world.repair().await.repaired;
    }
    writing.await.unwrap();
    drop(stop);
    following.await.unwrap();
    world.repair().await;
    println!("{verified} verifications, {repaired} entries repaired beside writers");
    fine(&world, "after repairs beside writers").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_changes_that_are_not_applied_are_pending() {
    let world = small().await;
    world.put("r1", &[("colour", "blue".into())]).await;
    world.put("r7", &[("colour", "blue".into())]).await;
    let red = world.key("by_colour", &["red".into()], "r2").await;
    world.write_entry(&red, sideindex::clock::now(), &[1, 0]).await;
    let report = world.repair().await;
    assert_eq!((report.pending, report.applied, report.changes), (2, 3, 5));
    assert_eq!(found(&report), BTreeSet::from([(Class::Outdated, red.to_vec())]));
    assert_eq!(report.repaired, 1);
    world.apply().await;
    fine(&world, "applied").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_repaired_stands_above_what_hid_it() {
    let world = small().await;
    let red = world.key("by_colour", &["red".into()], "r1").await;
    world.hide_entry(&red, sideindex::clock::now() + 50).await;
    world.repair().await;
    let spec = ReadSpec { raw: true, ..ReadSpec::default() };
    let row = world.store.get(INDEX, &[red], &spec).await.unwrap().remove(0);
    let newest = row.cells.iter().max_by_key(|c| c.timestamp).unwrap();
    assert_eq!((newest.kind, &newest.value[..]), (CellKind::Put, &[1, 0][..]), "{row:?}");
}
