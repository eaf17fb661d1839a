//! A diagnosis in this process, without a crate: rustc diagnose.rs -lposenc && ./diagnose
use std::ffi::{c_char, c_double, c_int, c_void, CString};

#[repr(C)]
pub struct Reply {
    _private: [u8; 0],
}

#[link(name = "posenc")]
extern "C" {
    fn pe_call(method: *const c_char, target: *const c_char, content_type: *const c_char, body: *const c_void, n_body: usize,
               max_bytes: c_double, max_work: c_double) -> *mut Reply;
    fn pe_reply_status(reply: *const Reply) -> c_int;
    fn pe_reply_read(reply: *mut Reply, dst: *mut c_void, n: usize) -> isize;
    fn pe_reply_free(reply: *mut Reply);
}

/// The status and the whole body. The library copies the texts and borrows the body until the reply is freed.
fn call(target: &str, body: &str) -> Option<(i32, Vec<u8>)> {
    let (method, json) = (CString::new("POST").ok()?, CString::new("application/json").ok()?);
    let (target, mut whole, mut piece) = (CString::new(target).ok()?, Vec::new(), [0u8; 65536]);
    unsafe {
        let reply = pe_call(method.as_ptr(), target.as_ptr(), json.as_ptr(), body.as_ptr().cast(), body.len(), 0.0, 0.0);
        if reply.is_null() {
            return None;
        }
        loop {
            let n = pe_reply_read(reply, piece.as_mut_ptr().cast(), piece.len());
            if n <= 0 {
                break;
            }
            whole.extend_from_slice(&piece[..n as usize]);
        }
        let status = pe_reply_status(reply);
        pe_reply_free(reply);
        Some((status, whole))
    }
}

fn main() {
    // The neighbouring channels are rotated; the layout half pairs channel 0 with 2, and 1 with 3.
    let (a, b) = (1f64, 0.01f64);
    let q_out = [a.cos() - 2.0 * a.sin(), 2.0 * a.cos() + a.sin(), 3.0 * b.cos() - 4.0 * b.sin(), 4.0 * b.cos() + 3.0 * b.sin()];
    let body = format!(r#"{{"scheme":"rope","layout":"half","head_dim":4,"offset":1,"q":[[1,2,3,4]],"q_out":[{:?}]}}"#, q_out);
    let (status, text) = call("/diagnose?format=text", &body).expect("no memory");
    print!("{}", String::from_utf8_lossy(&text));
    std::process::exit(if status == 200 { 0 } else { 2 });
}
