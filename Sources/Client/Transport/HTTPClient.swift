internal import CCurl
package import ThicketCrypto
package import ThicketProtocol

/// An answer to an HTTP request.
package struct HTTPAnswer: Sendable, Equatable {
    package let status: Int
    /// The fields of the last answer, where several were received.
    package let fields: HTTPFields
    package let body: [UInt8]

    package init(status: Int, fields: HTTPFields, body: [UInt8]) {
        (self.status, self.fields, self.body) = (status, fields, body)
    }
}

/// HTTP requests over libcurl, one at a time on a dedicated thread, because libcurl blocks.
///
/// Linux only: libcurl. On Apple platforms this actor would use URLSession.
package actor HTTPClient {
    private let loop: EngineLoop
    private let options: TransportOptions
    private let keepsConnection: Bool
    /// With its open connection.
    private var idle: CurlHandle?
    /// Connections made so far.
    package private(set) var connectionsMade = 0
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Largest body of an answer, in bytes.
    package static let bodyBytesMax = 64 << 20
    /// Most header fields of an answer that are kept.
    static let fieldsMax = 256

    /// - Parameters:
    ///   - options: of all connections.
    ///   - keepsConnection: a request to the server of the last one uses its connection. libcurl then sends a request
    ///     again by itself when the server has just closed that connection, so each request must be idempotent.
    /// - Throws: `limit` when the system cannot make a thread.
    package init(
        options: TransportOptions = TransportOptions(), keepsConnection: Bool = false
    ) throws(ClientError) {
        (self.options, self.keepsConnection) = (options, keepsConnection)
        loop = try EngineLoop()
    }

    deinit { loop.stop() }

    /// Sends a request and waits for the answer.
    ///
    /// - Parameters:
    ///   - method: nil: POST with a body, otherwise GET.
    ///   - fields: header lines such as `Content-Type: application/json`.
    ///   - body: sent with POST or the given method.
    ///   - timeoutSeconds: for the whole request, 1 or more.
    /// - Throws: `network` when no answer is received, `untrusted` when the server cannot prove its identity, `limit`
    ///   when the body is too large, `invalidName` for an invalid address.
    package func request(
        _ address: String, method: String? = nil, fields: [String] = [], body: [UInt8]? = nil, timeoutSeconds: Int = 30
    ) throws(ClientError) -> HTTPAnswer {
        guard let body else { return try perform(address, method, fields, nil, timeoutSeconds) }
        return try body.lend { bytes throws(ClientError) in
            try perform(address, method, fields, bytes, timeoutSeconds)
        }
    }

    /// As above, with a body that holds a secret and is read without a copy. libcurl's own buffers are freed with the
    /// handle; they are not wiped.
    package func request(
        _ address: String, method: String?, fields: [String], secret: SecureBytes, timeoutSeconds: Int = 30
    ) throws(ClientError) -> HTTPAnswer {
        try secret.withUnsafeBytes { bytes throws(ClientError) in
            try perform(address, method, fields, bytes, timeoutSeconds)
        }
    }

    private func perform(
        _ address: String, _ method: String?, _ fields: [String], _ body: UnsafeRawBufferPointer?,
        _ timeoutSeconds: Int
    ) throws(ClientError) -> HTTPAnswer {
        guard !address.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }),
            !fields.contains(where: { $0.utf8.contains { $0 == 0x0D || $0 == 0x0A } })
        else { throw ClientError(.invalidName, "the address or a header field contains invalid characters") }
        guard let handle = idle ?? CurlHandle(options) else {
            throw ClientError(.network, "libcurl could not start")
        }
        idle = nil
        defer {
            connectionsMade += handle.connectionsMade
            if keepsConnection {
                handle.reset(options)
                idle = handle
            }
        }
        let gathered = Gathered()
        handle.set(CURLOPT_URL, address)
        handle.set(CURLOPT_TIMEOUT_MS, max(1, timeoutSeconds) * 1_000)
        handle.allow(isSecure: address.lowercased().hasPrefix("https:"))
        handle.set(CURLOPT_HTTPHEADER, lines: fields + ["Expect:"])
        handle.set(CURLOPT_WRITEDATA, pointer: Unmanaged.passUnretained(gathered).toOpaque())
        handle.set(CURLOPT_WRITEFUNCTION, callback: gatherBody)
        handle.set(CURLOPT_HEADERDATA, pointer: Unmanaged.passUnretained(gathered).toOpaque())
        handle.set(CURLOPT_HEADERFUNCTION, callback: gatherField)
        if let method { handle.set(CURLOPT_CUSTOMREQUEST, method) }
        let result = withExtendedLifetime(gathered) {
            guard let body else { return curl_easy_perform(handle.pointer) }
            guard !body.isEmpty else {
                // Without explicit data libcurl would read the body from the program's standard input.
                handle.set(CURLOPT_COPYPOSTFIELDS, "")
                return curl_easy_perform(handle.pointer)
            }
            // libcurl reads the bytes only during the call.
            handle.set(CURLOPT_POST, 1)
            handle.set(CURLOPT_POSTFIELDSIZE_LARGE, offset: Int64(body.count))
            handle.set(CURLOPT_POSTFIELDS, pointer: UnsafeMutableRawPointer(mutating: body.baseAddress))
            return curl_easy_perform(handle.pointer)
        }
        if gathered.isTooLarge { throw ClientError(.limit, "the answer is larger than \(Self.bodyBytesMax) bytes") }
        guard result == CURLE_OK else { throw handle.error(result) }
        return HTTPAnswer(status: handle.status, fields: gathered.fields, body: gathered.bytes)
    }
}

extension [UInt8] {
    /// `withUnsafeBytes` with typed errors.
    fileprivate func lend<Result>(
        _ body: (UnsafeRawBufferPointer) throws(ClientError) -> Result
    ) throws(ClientError) -> Result {
        let outcome: Swift.Result<Result, ClientError> = withUnsafeBytes { bytes in
            do throws(ClientError) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}

/// The callbacks' destination for an answer. Used by the calling thread during one request.
private final class Gathered {
    var bytes = [UInt8]()
    var fields = HTTPFields()
    var isTooLarge = false
}

/// A named function, because a closure would inherit the actor isolation of its context.
private func gatherBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let context else { return 0 }
    let gathered = Unmanaged<Gathered>.fromOpaque(context).takeUnretainedValue()
    guard gathered.bytes.count + size * count <= HTTPClient.bodyBytesMax else {
        gathered.isTooLarge = true
        return 0
    }
    gathered.bytes.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}

/// Receives one header line: a status line starts a new header, a field contains a colon.
private func gatherField(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let context else { return 0 }
    let gathered = Unmanaged<Gathered>.fromOpaque(context).takeUnretainedValue()
    let line = Substring(
        String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self))
    if line.hasPrefix("HTTP/") { gathered.fields = HTTPFields() }
    let parts: [Substring] = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, gathered.fields.all.count < HTTPClient.fieldsMax else { return size * count }
    let value = Substring(parts[1].drop { $0 == " " }.reversed().drop { $0.isWhitespace }.reversed())
    gathered.fields.append(parts[0].lowercased(), String(value))
    return size * count
}
