internal import CCurl
internal import Glibc
internal import Synchronization

/// One libcurl transfer handle with what all our uses of it have in common. Used by one thread at a time.
///
/// Linux only: libcurl is what every Linux has; on Apple platforms: the system's own network classes behind
/// `Transport`.
final class CurlHandle {
    let raw: OpaquePointer
    private var lists = [UnsafeMutablePointer<curl_slist>]()
    /// Where libcurl writes what went wrong, in more words than its code.
    private let problem: UnsafeMutablePointer<CChar>

    /// libcurl's one-time start, which must not run twice at once.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// nil: libcurl could not start, or is out of memory.
    init?(_ options: TransportOptions) {
        guard Self.isReady, let made = curl_easy_init() else { return nil }
        raw = OpaquePointer(made)
        problem = .allocate(capacity: Int(CURL_ERROR_SIZE))
        problem.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        set(CURLOPT_ERRORBUFFER, pointer: problem)
        set(CURLOPT_NOSIGNAL, 1)
        // Do not wait for a name server when the attempt is given up.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeoutMilliseconds)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_USERAGENT, options.userAgent)
        secure(options)
        if let proxy = options.proxy {
            set(CURLOPT_PROXY, proxy)
            // What the user names counts, whatever `no_proxy` says of other programs.
            set(CURLOPT_NOPROXY, "")
        }
    }

    deinit {
        curl_easy_cleanup(UnsafeMutableRawPointer(raw))
        for list in lists { curl_slist_free_all(list) }
        problem.deallocate()
    }

    var pointer: UnsafeMutableRawPointer { UnsafeMutableRawPointer(raw) }

    func set(_ option: CURLoption, _ value: Int) { _ = thicket_curl_set_long(pointer, option, value) }
    func set(_ option: CURLoption, offset value: Int64) {
        _ = thicket_curl_set_offset(pointer, option, curl_off_t(value))
    }
    /// libcurl copies the text.
    func set(_ option: CURLoption, _ text: String) { _ = thicket_curl_set_string(pointer, option, text) }
    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) {
        _ = thicket_curl_set_pointer(pointer, option, value)
    }
    func set(_ option: CURLoption, callback: @escaping thicket_curl_write) {
        _ = thicket_curl_set_write(pointer, option, callback)
    }
    /// The lines live as long as the handle.
    func set(_ option: CURLoption, lines: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { list = curl_slist_append(list, line) ?? list }
        guard let list else { return }
        lists.append(list)
        _ = thicket_curl_set_list(pointer, option, list)
    }

    /// The HTTP status of the answer; 0 when there was none.
    var status: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_RESPONSE_CODE, &value)
        return value
    }

    /// OpenSSL's number for what is wrong with the server's certificate; 0: nothing.
    var verification: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_SSL_VERIFYRESULT, &value)
        return value
    }

    /// The status a proxy gave to our wish for a tunnel; 0 when there was none.
    var proxyStatus: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_HTTP_CONNECTCODE, &value)
        return value
    }

    /// nil when there is no connection.
    var socket: Int32? {
        var value: curl_socket_t = -1
        return thicket_curl_get_socket(pointer, &value) == CURLE_OK && value >= 0 ? value : nil
    }

    /// What went wrong, for a person.
    func text(_ code: CURLcode) -> String {
        problem.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: problem)
    }
}
