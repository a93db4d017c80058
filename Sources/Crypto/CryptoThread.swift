// Linux only: OpenSSL; on Apple platforms: nothing to do, since CommonCrypto keeps nothing for a thread.
internal import COpenSSL

/// What OpenSSL keeps for each thread that uses it: a random generator, errors.
///
/// It is given back when the thread ends. If the program ends at that very moment, OpenSSL's exit handler frees the
/// same memory on the main thread, twice at once: the heap breaks and the program is aborted. So a thread that may end
/// just before the program gives it back itself.
public enum CryptoThread {
    /// Gives back what the calling thread has. It may use OpenSSL again; then it has something again.
    public static func release() { OPENSSL_thread_stop() }
}
