import ThicketProtocol
import ThicketTreeShape

/// A request about a blob or an upload, checked as far as that needs neither the ledger nor the blob store.
public struct BlobCall: Sendable {
    enum Action: Sendable {
        /// Begin an upload in parts.
        case begin(length: Int64, partBytes: Int)
        /// A blob in one request; its bytes are the body.
        case small(length: Int, sha256: [UInt8])
        /// One part; its bytes are the body.
        case part(BlobID, number: Int, length: Int, sha256: [UInt8])
        /// The received parts of an upload.
        case parts(BlobID)
        /// Make a blob of an upload. `proof`: SHA-256 of the parts' hashes in order.
        case complete(BlobID, proof: [UInt8])
        /// Give an upload up.
        case abort(BlobID)
        /// Read a blob through a node of the owner's tree.
        case read(BlobID, owner: String, NodeID, BlobConditions)
    }

    let action: Action

    /// Whether the token must allow changes.
    var writes: Bool {
        switch action {
        case .begin, .small, .part, .complete, .abort: true
        case .parts, .read: false
        }
    }

    /// Whether the body of the request is the bytes of a blob.
    var hasBody: Bool {
        switch action {
        case .small, .part: true
        case .begin, .parts, .complete, .abort, .read: false
        }
    }

    /// The branch through which a blob is read; nil for other requests, and for a read of the own tree.
    var branch: BranchName? {
        if case .read(_, let owner, _, _) = action { BranchName(owner) } else { nil }
    }

    /// The upload and part that the request writes; nil for other requests.
    var part: (upload: BlobID, number: Int)? {
        if case .part(let upload, let number, _, _) = action { (upload, number) } else { nil }
    }

    // Bounds of the protocol (treesystem 4.5).

    /// Bytes of a part when the client names none.
    static let partBytes = 4 << 20
    /// Bytes that a client may choose for a part.
    static let partBytesRange = 1 << 20...16 << 20
    /// Parts of one upload.
    static let partsMax = 10_000
    /// Parts of one upload in progress at one time.
    static let partsAtOnce = 3
    /// The header with the SHA-256 of a body, 64 hex digits.
    static let hashField = "x-part-sha256"
}

/// A call of an authenticated user.
public struct BlobOrder: Sendable {
    let call: BlobCall
    let app: AppID
    let user: UserID
    /// Bytes that a guest may have in blobs and open uploads; nil for any other account.
    var guestBytesMax: Int64?
}

/// The conditions of a read (RFC 9110, 13 and 14).
struct BlobConditions: Sendable, Hashable {
    /// The value of `Range`; nil without one.
    var range: String?
    /// The value of `If-Range`: another blob's tag makes the answer whole.
    var ifRange: String?
    /// The value of `If-None-Match`.
    var ifNoneMatch: String?
    /// HEAD: the head alone.
    var isHead = false
}

/// The bytes of a blob that a request asks for (RFC 9110, 14).
enum BlobRange: Hashable {
    /// The whole blob: there is no range, or none of a form that the server supports (one range of bytes).
    case whole
    /// These bytes: 206.
    case part(Range<Int64>)
    /// No byte of the blob is in the range: 416.
    case none

    /// - Parameters:
    ///   - text: the value of the field; nil without one.
    ///   - length: bytes of the blob.
    init(_ text: String?, length: Int64) {
        self = .whole
        guard let text, text.utf8.starts(with: "bytes=".utf8) else { return }
        let ends = text.utf8.dropFirst(6).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2 else { return }
        switch (Self.number(ends[0]), Self.number(ends[1])) {
        case (let first?, let last?) where first <= last:
            self = first < length ? .part(first..<min(length, last == .max ? .max : last + 1)) : .none
        case (let first?, nil) where ends[1].isEmpty: self = first < length ? .part(first..<length) : .none
        case (nil, let count?) where ends[0].isEmpty: self = count > 0 ? .part(max(0, length - count)..<length) : .none
        default: break
        }
    }

    /// A number that is too large for 63 bits is as good as the largest.
    private static func number(_ digits: Substring.UTF8View) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { sum, digit in
            let (product, overflow) = sum.multipliedReportingOverflow(by: 10)
            let (next, over) = product.addingReportingOverflow(Int64(digit - 0x30))
            return overflow || over ? .max : next
        }
    }
}
