//! Tables: created once, listed, described.

use crate::bed::{Bed, kind_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use sideindex::error::ErrorKind;
use sideindex::model::RowMutation;
use sideindex::store::{Durability, ReadSpec, Scan, TableDescriptor};

pub fn created_once(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        bed.rows(["kept"]).await;
        let again = bed.store.create_table(&TableDescriptor::new(&bed.table, &["a", "b"], 3)).await;
        assert_eq!(kind_of(again), ErrorKind::AlreadyExists);
        let other = bed.store.create_table(&TableDescriptor::new(&bed.table, &["z"], 1)).await;
        assert_eq!(kind_of(other), ErrorKind::AlreadyExists);
        assert_eq!(bed.keys(Scan::all()).await, ["kept"]);
    }
    .boxed()
}

pub fn listed_and_described(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let names = ["z", "a", "m"].map(|n| format!("{}_{n}", bed.table));
        for name in &names {
            bed.store.create_table(&TableDescriptor::new(name, &["f", "g"], 7)).await.unwrap();
        }
        let listed = bed.store.list_tables().await.unwrap();
        assert!(listed.is_sorted());
        assert!(names.iter().all(|n| listed.contains(n)) && listed.contains(&bed.table));
        let described = bed.store.describe_table(&names[0]).await.unwrap();
        assert_eq!(described, TableDescriptor::new(&names[0], &["f", "g"], 7));
    }
    .boxed()
}

pub fn an_unknown_table(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let (store, name) = (&bed.store, "sx_no_such_table");
        assert_eq!(kind_of(store.describe_table(name).await), ErrorKind::NotFound);
        assert_eq!(kind_of(store.get(name, &["r".into()], &ReadSpec::default()).await), ErrorKind::NotFound);
        assert_eq!(kind_of(store.scan(name, Scan::all()).await.map(|_| ())), ErrorKind::NotFound);
        let mutations = vec![RowMutation::new("r", Vec::new())];
        assert_eq!(kind_of(store.mutate(name, mutations, Durability::Relaxed).await), ErrorKind::NotFound);
    }
    .boxed()
}

pub fn names_that_cannot_be(bed: &Bed) -> BoxFuture<'_, ()> {
    async {
        let long = "x".repeat(300);
        for name in ["", "a b", "a/b", ".a", "-a", "a\0", &long] {
            let made = bed.store.create_table(&TableDescriptor::new(name, &["f"], 1)).await;
            assert_eq!(kind_of(made), ErrorKind::InvalidInput, "table {name:?}");
        }
        let families: [&[&str]; 7] = [&[], &[""], &["a:b"], &["a\0"], &[".a"], &["f", "f"], &[&long]];
        for (i, families) in families.into_iter().enumerate() {
            let name = format!("{}_{i}", bed.table);
            let made = bed.store.create_table(&TableDescriptor::new(name, families, 1)).await;
            assert_eq!(kind_of(made), ErrorKind::InvalidInput, "families {families:?}");
        }
        let none = bed.store.create_table(&TableDescriptor::new(format!("{}_n", bed.table), &["f"], 0)).await;
        assert_eq!(kind_of(none), ErrorKind::InvalidInput);
    }
    .boxed()
}
