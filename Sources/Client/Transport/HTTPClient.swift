internal import CCurl
package import ThicketCrypto
package import ThicketProtocol

/// An answer to an HTTP request.
package struct HTTPAnswer: Sendable, Equatable {
    package let status: Int
    /// Of the last answer, where there were several.
    package let fields: HTTPFields
    package let body: [UInt8]
}

/// Plain requests over libcurl, one after another on a thread of its own, since libcurl blocks.
///
/// Linux only: libcurl; on Apple platforms: URLSession in the same actor.
package actor HTTPClient {
    private let loop: EngineLoop
    private let options: TransportOptions
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Bytes of an answer's body at most.
    package static let bodyBytesMax = 64 << 20
    /// Fields of an answer that are kept.
    static let fieldsMax = 256

    /// - Throws: `limit` when the system gives no thread.
    package init(options: TransportOptions = TransportOptions()) throws(ClientError) {
        self.options = options
        loop = try EngineLoop()
    }

    deinit { loop.stop() }

    /// - Parameters:
    ///   - method: nil: POST with a body, else GET.
    ///   - fields: header lines such as `Content-Type: application/json`.
    ///   - body: sent with POST, or the method that is named.
    ///   - timeoutSeconds: for the whole request, 1 or more.
    /// - Throws: `network` when there is no answer, `untrusted` when the server could not prove who it is, `limit` when
    ///   its body is too large, `invalidName` for a bad address.
    package func request(
        _ address: String, method: String? = nil, fields: [String] = [], body: [UInt8]? = nil, timeoutSeconds: Int = 30
    ) throws(ClientError) -> HTTPAnswer {
        guard let body else { return try perform(address, method, fields, nil, timeoutSeconds) }
        return try body.lend { bytes throws(ClientError) in
            try perform(address, method, fields, bytes, timeoutSeconds)
        }
    }

    /// The same with a body that holds a secret: it is read where it lies. What libcurl has of it while it sends goes
    /// with the handle, and is not wiped.
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
        else { throw ClientError(.invalidName, "the address or a header field holds characters that may not be there") }
        guard let handle = CurlHandle(options) else {
            throw ClientError(.network, "libcurl could not start")
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
                // Without a place for its bytes libcurl would read the program's standard input.
                handle.set(CURLOPT_COPYPOSTFIELDS, "")
                return curl_easy_perform(handle.pointer)
            }
            // libcurl reads the bytes during the call only.
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
    /// `withUnsafeBytes` whose errors keep their type.
    fileprivate func lend<Result>(
        _ body: (UnsafeRawBufferPointer) throws(ClientError) -> Result
    ) throws(ClientError) -> Result {
        let outcome: Swift.Result<Result, ClientError> = withUnsafeBytes { bytes in
            do throws(ClientError) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}

/// Where the callback puts a body. Used by the calling thread during one request.
private final class Gathered {
    var bytes = [UInt8]()
    var fields = HTTPFields()
    var isTooLarge = false
}

/// A named function: a closure would inherit the isolation of wherever it was written.
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

/// One line of a head: the status line begins another head, a field has a colon.
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
