//! One suite that every store must pass; one line per backend at the end.
//!
//! A check that is in no list is dead code, which the lints refuse.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod bed;
#[path = "../support/cluster.rs"]
#[allow(dead_code, reason = "nothing here asks the control port")]
mod cluster;
mod deletes;
mod filters;
mod raw;
mod rows;
mod scans;
mod snapshots;
mod tables;
mod updates;
mod versions;

use bed::{Backend, run};
use sideindex::store::embedded::{EmbeddedStore, Options};
use sideindex::store::thrift1::Thrift1Store;
use sideindex::store::thrift2::Thrift2Store;
use sideindex::store::{Gateway, Transport};
use std::sync::Arc;

/// `conformance_suite!(name, open)`: all checks against the backend that `open` makes.
macro_rules! conformance_suite {
    ($backend:ident, $open:path) => {
        mod $backend {
            conformance_suite!(@ $open;
                versions: newest_by_default, newest_first_as_many_as_asked, no_more_than_the_family_keeps,
                    a_put_at_the_same_timestamp_replaces, order_of_writing_does_not_matter, columns_in_byte_order,
                    extreme_timestamps, a_column_read_alone, no_columns_no_cells;
                deletes: delete_column, delete_version, delete_family, delete_family_version,
                    markers_hide_puts_written_later, family_markers_stay_in_their_family, several_families_at_once, several_markers_of_one_family,
                    hidden_versions_do_not_count, a_newer_put_shows_again, the_empty_qualifier_is_a_column,
                    markers_of_one_column_leave_its_neighbours, put_and_clear_is_atomic;
                scans: rows_in_byte_order, start_is_included_and_stop_is_not, bounds_with_extreme_bytes, empty_ranges,
                    prefixes, overlong_bounds, every_page_size_gives_the_same, reversed, reversed_between_bounds,
                    deleted_rows_are_left_out, columns_of_a_scan, an_empty_table, large_rows_make_short_pages,
                    split_points_cover_all_rows_once;
                filters: comparisons, a_row_without_the_column_is_dropped, only_the_newest_version_is_tested,
                    not_equal_drops_missing, a_column_not_read_counts_as_missing, a_deleted_column_is_missing,
                    a_filtered_get_keeps_its_place, sparse_matches_are_all_found, keys_only, first_keys, column_prefixes,
                    column_pages, pages_of_rows, row_filters, fuzzy_rows, lists, filters_that_cannot_be;
                raw: everything_stored_in_order, versions_and_filter_are_ignored, columns_of_a_raw_read;
                rows: get_keeps_the_order_of_keys, a_missing_row_has_no_cells, a_key_may_be_asked_twice,
                    row_keys_that_do_not_fit, an_unknown_family, a_timestamp_out_of_bounds, a_marker_with_a_stray_qualifier,
                    a_refused_call_applies_nothing, a_large_value, a_wide_row, many_mutations_of_one_row,
                    nothing_to_write, no_versions_are_refused, relaxed_writes_are_visible_and_sync;
                snapshots: a_snapshot_does_not_change, a_scan_of_a_snapshot;
                updates: increments_start_at_0_and_add_up, increments_go_on_from_what_was_put, updates_of_what_cannot_be,
                    no_number_is_given_twice, a_check_decides, exactly_one_check_wins;
                tables: created_once, listed_and_described, an_unknown_table, names_that_cannot_be,
            );
        }
    };
    (@ $open:path; $($group:ident: $($check:ident),+);+ $(,)?) => {
        $(mod $group {
            $(#[test]
            fn $check() {
                $crate::run(|| Box::pin($open()), stringify!($check), $crate::$group::$check);
            })+
        })+
    };
}

async fn open_embedded() -> Backend {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), Options::default()).unwrap();
    Backend { store: Arc::new(store), keep: Box::new(directory) }
}

async fn open_thrift2() -> Backend {
    thrift2(Gateway::new(cluster::address("THRIFT2"))).await
}

async fn open_thrift2_framed() -> Backend {
    thrift2(Gateway { transport: Transport::Framed, ..Gateway::new(cluster::address("THRIFT2_FRAMED")) }).await
}

async fn open_thrift1() -> Backend {
    let gateway = Gateway::new(cluster::address("THRIFT1"));
    Backend { store: Arc::new(Thrift1Store::connect(vec![gateway]).await.unwrap()), keep: Box::new(()) }
}

async fn thrift2(gateway: Gateway) -> Backend {
    Backend { store: Arc::new(Thrift2Store::connect(vec![gateway]).await.unwrap()), keep: Box::new(()) }
}

conformance_suite!(embedded, crate::open_embedded);
conformance_suite!(thrift2, crate::open_thrift2);
conformance_suite!(thrift2_framed, crate::open_thrift2_framed);
conformance_suite!(thrift1, crate::open_thrift1);
