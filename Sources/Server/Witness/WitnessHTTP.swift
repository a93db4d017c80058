import CCurl
import Glibc

/// Requests of a witness to the server that it watches. Belongs to one thread; a call blocks on the network.
struct WitnessHTTP {
    /// Milliseconds for connecting, and for one request.
    static let connectMilliseconds = 10_000
    static let requestMilliseconds = 60_000
    /// Most bytes of an answer.
    static let answerBytesMax = 4 << 20

    /// The app's path at the server: `https://example.com/1/notes/`.
    let base: String
    /// Token of a user of the app.
    let token: String
    /// Certificates to trust instead of the system's, PEM.
    let authorityFile: String?

    /// libcurl's one-time initialization.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    func ask(_ method: String, _ path: String, _ body: [UInt8]) throws(WitnessRun.Failure) -> WitnessRun.Answer {
        guard Self.isReady, let handle = curl_easy_init() else { throw WitnessRun.Failure("libcurl could not start") }
        defer { curl_easy_cleanup(handle) }
        var fields: UnsafeMutablePointer<curl_slist>?
        for field in ["X-Simperium-Token: \(token)", "Content-Type: application/json", "Expect:"] {
            fields = curl_slist_append(fields, field)
        }
        defer { curl_slist_free_all(fields) }
        _ = thicket_curl_set_string(handle, CURLOPT_URL, base + path)
        _ = thicket_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = thicket_curl_set_string(handle, CURLOPT_CUSTOMREQUEST, method)
        _ = thicket_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)
        _ = thicket_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        _ = thicket_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, Self.connectMilliseconds)
        _ = thicket_curl_set_long(handle, CURLOPT_TIMEOUT_MS, Self.requestMilliseconds)
        _ = thicket_curl_set_long(handle, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let authorityFile { _ = thicket_curl_set_string(handle, CURLOPT_CAINFO, authorityFile) }
        if !body.isEmpty {
            _ = thicket_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, body.count)
            // libcurl copies the bytes; the size has to be set before.
            body.withUnsafeBufferPointer { bytes in
                _ = thicket_curl_set_pointer(
                    handle, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress))
            }
        }
        let received = WitnessAnswer()
        _ = thicket_curl_set_pointer(handle, CURLOPT_WRITEDATA, Unmanaged.passUnretained(received).toOpaque())
        _ = thicket_curl_set_write(handle, CURLOPT_WRITEFUNCTION, receiveAnswer)
        let code = curl_easy_perform(handle)
        guard code == CURLE_OK else {
            throw WitnessRun.Failure("the server cannot be reached: \(String(cString: curl_easy_strerror(code)))")
        }
        var status = 0
        _ = thicket_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return WitnessRun.Answer(status: status, body: received.bytes)
    }
}

/// What libcurl has received, on the thread of the call.
private final class WitnessAnswer {
    var bytes = [UInt8]()
}

/// Appends received bytes; returning another number ends the transfer.
private func receiveAnswer(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let context else { return 0 }
    let answer = Unmanaged<WitnessAnswer>.fromOpaque(context).takeUnretainedValue()
    guard answer.bytes.count + size * count <= WitnessHTTP.answerBytesMax else { return 0 }
    answer.bytes += UnsafeRawBufferPointer(start: bytes, count: size * count)
    return size * count
}
