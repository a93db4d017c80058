// Linux only: OpenSSL; on Apple platforms: nothing to do, since CommonCrypto keeps nothing for a thread.
internal import COpenSSL

/// The state that OpenSSL keeps for each thread that uses it: a random generator and errors.
///
/// OpenSSL frees it when the thread ends. If the program exits at the same moment, OpenSSL's exit handler on the main
/// thread frees the same memory a second time; the heap is corrupted and the program aborts. A thread that may end just
/// before the program must therefore free the state itself.
public enum CryptoThread {
    /// Frees the state of the calling thread. If the thread uses OpenSSL again, the state is created again.
    public static func release() { OPENSSL_thread_stop() }
}
