import CCurl
import Glibc
import ThicketAuth

/// Delivers messages to one mail server and keeps the connection while it works. Belongs to one thread; a call blocks
/// on the network.
final class SMTPSender {
    /// The result of an attempt and its reason, for the log. It contains no text of the server, which may hold
    /// addresses.
    struct Outcome: Equatable {
        let result: MailCourier.Result
        let reason: String
    }

    /// Milliseconds for connecting, and for one whole message.
    static let connectMilliseconds = 10_000
    static let messageMilliseconds = 60_000

    private let settings: SMTPSettings
    private let isStopping: @Sendable () -> Bool
    private var handle: SMTPHandle?

    /// - Parameter isStopping: polled several times a second during a call: true aborts the call, and the message
    ///   stays.
    init(_ settings: SMTPSettings, isStopping: @escaping @Sendable () -> Bool) {
        (self.settings, self.isStopping) = (settings, isStopping)
    }

    /// Ends the connection; the next message opens another.
    func hangUp() { handle = nil }

    /// - Parameter message: RFC 5322, with lines that end in CR LF.
    func send(_ message: [UInt8], to address: MailAddress) -> Outcome {
        let handle: SMTPHandle
        if let open = self.handle {
            handle = open
        } else {
            do throws(SMTPSettings.Problem) {
                handle = try begin()
            } catch {
                return Outcome(result: .unreachable, reason: error.description)
            }
        }
        let outcome = handle.send(message, from: settings.from, to: address)
        // A connection with a failure is not used again.
        if outcome.result != .taken { hangUp() }
        return outcome
    }

    private func begin() throws(SMTPSettings.Problem) -> SMTPHandle {
        let login = try settings.login()
        guard let made = SMTPHandle(settings, login, isStopping) else {
            throw SMTPSettings.Problem("libcurl could not start")
        }
        handle = made
        return made
    }
}

/// One libcurl handle for SMTP.
private final class SMTPHandle {
    private let raw: UnsafeMutableRawPointer
    /// Buffer for libcurl's error text.
    private let problem: UnsafeMutablePointer<CChar>
    private let payload: SMTPPayload
    private let needsStartTLS: Bool

    /// libcurl's one-time initialization.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// nil: libcurl could not start, or is out of memory.
    init?(
        _ settings: SMTPSettings, _ login: (user: String, password: String)?,
        _ isStopping: @escaping @Sendable () -> Bool
    ) {
        guard Self.isReady, let made = curl_easy_init() else { return nil }
        raw = made
        problem = .allocate(capacity: Int(CURL_ERROR_SIZE))
        problem.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        payload = SMTPPayload(isStopping)
        needsStartTLS = settings.needsStartTLS
        let context = Unmanaged.passUnretained(payload).toOpaque()
        _ = thicket_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, problem)
        set(CURLOPT_URL, settings.url)
        // Only mail protocols are allowed, whatever the URL says, and no proxy from the environment is used.
        set(CURLOPT_PROTOCOLS_STR, "smtp,smtps")
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NOSIGNAL, 1)
        // Do not wait for a name server when the server stops.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, SMTPSender.connectMilliseconds)
        set(CURLOPT_TIMEOUT_MS, SMTPSender.messageMilliseconds)
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if needsStartTLS { set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue)) }
        if let file = settings.authorityFile { set(CURLOPT_CAINFO, file) }
        if let login {
            set(CURLOPT_USERNAME, login.user)
            set(CURLOPT_PASSWORD, login.password)
        }
        set(CURLOPT_MAIL_FROM, "<\(settings.from.text)>")
        set(CURLOPT_UPLOAD, 1)
        _ = thicket_curl_set_pointer(raw, CURLOPT_READDATA, context)
        _ = thicket_curl_set_write(raw, CURLOPT_READFUNCTION, giveMessage)
        set(CURLOPT_NOPROGRESS, 0)
        _ = thicket_curl_set_pointer(raw, CURLOPT_XFERINFODATA, context)
        _ = thicket_curl_set_progress(raw, CURLOPT_XFERINFOFUNCTION, askToGoOn)
    }

    deinit {
        curl_easy_cleanup(raw)
        problem.deallocate()
    }

    private func set(_ option: CURLoption, _ value: Int) { _ = thicket_curl_set_long(raw, option, value) }
    /// libcurl copies the text.
    private func set(_ option: CURLoption, _ text: String) { _ = thicket_curl_set_string(raw, option, text) }

    func send(_ message: [UInt8], from: MailAddress, to address: MailAddress) -> SMTPSender.Outcome {
        let list = curl_slist_append(nil, "<\(address.text)>")
        defer { curl_slist_free_all(list) }
        _ = thicket_curl_set_list(raw, CURLOPT_MAIL_RCPT, list)
        _ = thicket_curl_set_offset(raw, CURLOPT_INFILESIZE_LARGE, curl_off_t(message.count))
        payload.rest = message[...]
        problem.pointee = 0
        let code = curl_easy_perform(raw)
        payload.rest = []
        _ = thicket_curl_set_list(raw, CURLOPT_MAIL_RCPT, nil)
        var status = 0
        _ = thicket_curl_get_long(raw, CURLINFO_RESPONSE_CODE, &status)
        return outcome(code, status, String(cString: problem))
    }

    /// What libcurl's result means for the message and for those after it.
    /// - Parameters:
    ///   - status: the server's newest reply code; 0 when it sent none.
    ///   - words: libcurl's error text; may be empty.
    private func outcome(_ code: CURLcode, _ status: Int, _ words: String) -> SMTPSender.Outcome {
        guard code != CURLE_OK else { return .init(result: .taken, reason: "") }
        // Refusals of this one message: of its recipient, of its text, or of the whole message at its end.
        let isAboutMessage =
            words.hasPrefix("RCPT failed") || words.hasPrefix("DATA failed")
            || (code == CURLE_WEIRD_SERVER_REPLY && words.isEmpty)
        if isAboutMessage, (500...599).contains(status) {
            return .init(result: .refused, reason: "the server refused it with \(status)")
        }
        if isAboutMessage, (400...499).contains(status), status != 421 {
            return .init(result: .deferred, reason: "the server rejected it for now with \(status)")
        }
        let what = words.isEmpty ? String(cString: curl_easy_strerror(code)) : words
        return .init(result: .unreachable, reason: advice(code, words).map { "\(what); \($0)" } ?? what)
    }

    /// What an operator can do about it.
    private func advice(_ code: CURLcode, _ words: String) -> String? {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT:
            "check smtp-url and that the server runs at this address"
        case CURLE_LOGIN_DENIED: "check user and password in smtp-login-file"
        case CURLE_USE_SSL_FAILED:
            "the server offers no STARTTLS: use smtps:// if it supports that, or smtp-starttls off for a server on this machine"
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE:
            "set smtp-ca to the authority that signed the server's certificate; the host in smtp-url must be the "
                + "certificate's name"
        case CURLE_SSL_CONNECT_ERROR: "smtps:// is for servers that begin with TLS, often on port 465"
        case CURLE_OPERATION_TIMEDOUT: "the server is slow, or a firewall blocks the connection"
        case _ where words.hasPrefix("MAIL failed"): "the server accepts no mail from the address in mail-from"
        default: nil
        }
    }
}

/// The message in progress, for libcurl's callbacks. Used by the thread that calls `send`.
private final class SMTPPayload {
    var rest = ArraySlice<UInt8>()
    let isStopping: @Sendable () -> Bool
    init(_ isStopping: @escaping @Sendable () -> Bool) { self.isStopping = isStopping }
}

/// libcurl requests the next bytes of the message.
private func giveMessage(
    _ room: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let room, let context else { return 0 }
    let payload = Unmanaged<SMTPPayload>.fromOpaque(context).takeUnretainedValue()
    let part = payload.rest.prefix(size * count)
    part.withUnsafeBytes { bytes in
        if let start = bytes.baseAddress { memcpy(room, start, bytes.count) }
    }
    payload.rest = payload.rest.dropFirst(part.count)
    return part.count
}

/// libcurl asks whether to continue; any value except 0 aborts the transfer.
private func askToGoOn(
    _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
    guard let context else { return 0 }
    return Unmanaged<SMTPPayload>.fromOpaque(context).takeUnretainedValue().isStopping() ? 1 : 0
}
