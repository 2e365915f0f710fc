//! What tasks and threads made is right, and all of it goes back.

use tasks::{count_all, live_bytes, send_all, sum_of_lists};

/// Sums by formula, not by a pool; and afterwards nothing of the pool is live, whichever threads dropped it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_on_several_threads_share_a_pool() {
    for _ in 0..3 {
        // Each 65 tasks count 0 to 64.
        assert_eq!(count_all(65 * 40).await.unwrap(), 40 * 64 * 65 / 2);
        assert_eq!(send_all(256 * 30).await.unwrap(), 30 * 255 * 256 / 2);
        assert_eq!(live_bytes().unwrap(), 0);
    }
}

#[test]
fn threads_of_rayon_fill_one_pool() {
    for count in [1, 999, 1_000, 1_001, 200_000] {
        assert_eq!(sum_of_lists(count).unwrap(), count * (count - 1) / 2);
    }
    assert_eq!(sum_of_lists(0).unwrap(), 0);
}
