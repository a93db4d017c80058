import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape
import ThicketTreesystem

/// Requests about blobs as `HTTPBlobTransport` writes them, and how it reads their answers.
struct BlobRequests {
    private let account: Account

    init(of account: Account) { self.account = account }

    func begin(length: UInt64, partBytes: Int) -> [UInt8] {
        request("POST", "", body: Array("{\"length\":\(length),\"part\":\(partBytes)}".utf8))
    }

    func whole(_ bytes: [UInt8]) -> [UInt8] { request("POST", "", hashed: true, body: bytes) }

    /// - Parameter part: its number, from 0; on the wire parts count from 1.
    func part(_ part: Int, of upload: String, _ bytes: [UInt8]) -> [UInt8] {
        request("PUT", "/\(upload)/\(part + 1)", hashed: true, body: bytes)
    }

    func status(of upload: String) -> [UInt8] { request("GET", "/\(upload)") }
    func abort(_ upload: String) -> [UInt8] { request("DELETE", "/\(upload)") }

    func complete(_ upload: String, sha256: [UInt8]) -> [UInt8] {
        request("POST", "/\(upload)/complete", body: Array("{\"sha256\":\"\(Hex.encode(sha256))\"}".utf8))
    }

    func read(_ reference: BlobReference, _ range: Range<UInt64>) -> [UInt8] {
        let owner = reference.owner.text.replacing("@", with: "%40")
        return request(
            "GET", "/\(reference.blob.text)?node=\(owner)/\(reference.node.text)",
            field: "range: bytes=\(range.lowerBound)-\(range.upperBound - 1)")
    }

    private func request(
        _ method: String, _ path: String, field: String? = nil, hashed: Bool = false, body: [UInt8] = []
    ) -> [UInt8] {
        var lines = [
            "\(method) /1/\(account.app.text)/blob\(path) HTTP/1.1", "host: a", "x-simperium-token: \(account.token)",
        ]
        if let field { lines.append(field) }
        if hashed { lines.append("x-part-sha256: \(Hex.encode(Hash.sha256(body)))") }
        if !body.isEmpty { lines.append("content-length: \(body.count)") }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
    }

    // MARK: - Answers

    /// - Returns: nil for a success.
    static func failure(_ response: HTTPResponse?) -> BlobFailure? {
        guard let response else { return .lost }
        return HTTPBlobTransport.failure(
            HTTPAnswer(status: response.status, fields: response.fields, body: response.body))
    }

    private static func object(_ response: HTTPResponse?) -> JSONObject? {
        response.flatMap { try? JSONValue(parsing: $0.body) }?.objectValue
    }

    static func begun(_ response: HTTPResponse?) -> BlobUpload? {
        guard let object = object(response), let id = object["upload"]?.stringValue,
            let part = object["part"]?.intValue
        else { return nil }
        return BlobUpload(id: id, partBytes: Int(part))
    }

    static func blob(_ response: HTTPResponse?) -> BlobID? {
        object(response)?["blob"]?.stringValue.flatMap(BlobID.init(text:))
    }

    static func status(_ response: HTTPResponse?) -> BlobUploadStatus? {
        guard let list = object(response)?["received"]?.arrayValue else { return nil }
        var parts = [Int: [UInt8]]()
        for part in list {
            guard let number = part["n"]?.intValue, let hash = part["sha256"]?.stringValue.flatMap({ Hex.decode($0) })
            else { return nil }
            parts[Int(number) - 1] = hash
        }
        return BlobUploadStatus(parts: parts, blob: blob(response))
    }

    /// The bytes from the first that was asked for; nil for an answer without a range.
    static func piece(_ response: HTTPResponse?, from first: UInt64) -> BlobPiece? {
        guard let response, response.status == 206,
            let (start, total) = HTTPBlobTransport.contentRange(response.fields["content-range"]), start == first
        else { return nil }
        return BlobPiece(bytes: response.body, total: total)
    }
}
