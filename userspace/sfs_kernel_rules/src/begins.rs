//! running(): FAIR's virtual time goes on, up to the task that begins, and not beyond one that waits.

use crate::policy::{before, FAIR};
use crate::queues::{self, own, FAIR as FAIR_QUEUE, OUTSIDE};
use crate::watch::Call;

/// Checks it.
pub fn check(call: &Call) {
    let (was, is) = (&call.was.look, &call.is);
    let mut expected = was.fair_now;
    let starts = was.has_context == 0 || was.turn == FAIR;
    // The word is that of its key until it runs.
    let vtime = if was.has_key != 0 {
        was.fair_vtime
    } else {
        was.vtime
    };
    if starts && before(expected, vtime) {
        let queues = queues::all(call.cpu);
        let own_queues = [FAIR_QUEUE, OUTSIDE].map(|queue| own(queue, call.cpu as i64));
        let ids = [FAIR_QUEUE, OUTSIDE].into_iter().chain(own_queues);
        let firsts = ids.filter_map(|id| queues.get(id)).map(|queue| queue.vtime);
        let first = firsts.fold(
            vtime,
            |first, at| if before(at, first) { at } else { first },
        );
        if before(expected, first) {
            expected = first;
        }
    }
    call.equal("virtual time of FAIR", is.fair_now, expected);
}
