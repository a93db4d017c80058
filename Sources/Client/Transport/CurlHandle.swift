internal import CCurl
internal import Glibc
internal import Synchronization

/// A libcurl transfer handle with the options that all uses share. Used by one thread at a time.
///
/// Linux only: every Linux distribution has libcurl. On Apple platforms the system's network classes implement
/// `Transport`.
final class CurlHandle {
    let raw: OpaquePointer
    private var lists = [UnsafeMutablePointer<curl_slist>]()
    /// The buffer in which libcurl describes an error in more detail than its code.
    private let problem: UnsafeMutablePointer<CChar>

    /// libcurl's one-time initialisation, which must not run concurrently.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// nil when libcurl could not be initialised, or is out of memory.
    init?(_ options: TransportOptions) {
        guard Self.isReady, let made = curl_easy_init() else { return nil }
        raw = OpaquePointer(made)
        problem = .allocate(capacity: Int(CURL_ERROR_SIZE))
        problem.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        prepare(options)
    }

    /// Removes the options of the last request; open connections stay, and the next request to their server uses them.
    func reset(_ options: TransportOptions) {
        curl_easy_reset(pointer)
        for list in lists { curl_slist_free_all(list) }
        lists = []
        problem.pointee = 0
        prepare(options)
    }

    private func prepare(_ options: TransportOptions) {
        set(CURLOPT_ERRORBUFFER, pointer: problem)
        set(CURLOPT_NOSIGNAL, 1)
        // Does not wait for a running DNS lookup when the attempt is cancelled.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeoutMilliseconds)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_USERAGENT, options.userAgent)
        secure(options)
        if let proxy = options.proxy {
            set(CURLOPT_PROXY, proxy)
            // A proxy named by the user is used for all hosts, whatever `no_proxy` says.
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
    /// The lines are kept until the handle is released.
    func set(_ option: CURLoption, lines: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { list = curl_slist_append(list, line) ?? list }
        guard let list else { return }
        lists.append(list)
        _ = thicket_curl_set_list(pointer, option, list)
    }

    /// The HTTP status of the answer; 0 when none was received.
    var status: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_RESPONSE_CODE, &value)
        return value
    }

    /// OpenSSL's error number for the server's certificate; 0 when it is valid.
    var verification: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_SSL_VERIFYRESULT, &value)
        return value
    }

    /// The proxy's status for the tunnel request; 0 when none was received.
    var proxyStatus: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_HTTP_CONNECTCODE, &value)
        return value
    }

    /// Connections that the last request made: 0 when it used an open one.
    var connectionsMade: Int {
        var value = 0
        _ = thicket_curl_get_long(pointer, CURLINFO_NUM_CONNECTS, &value)
        return value
    }

    /// nil when not connected.
    var socket: Int32? {
        var value: curl_socket_t = -1
        return thicket_curl_get_socket(pointer, &value) == CURLE_OK && value >= 0 ? value : nil
    }

    /// A description of the error for the user.
    func text(_ code: CURLcode) -> String {
        problem.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: problem)
    }
}
