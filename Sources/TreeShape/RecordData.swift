import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The content of a node as its record names it: `d`.
public enum RecordData: Sendable, Hashable {
    /// Sealed content inside the record: `{"id":…,"i":…}`.
    case inline(DataID, sealed: [UInt8])
    /// Sealed content in a blob: `{"id":…,"z":…,"b":…}`; `length` is the number of the blob's bytes.
    case blob(DataID, length: UInt64, blob: BlobID)
    /// Content inside the record that a list of nodes leaves out: `{"id":…,"y":…,"h":…}`; `length` is the number of
    /// sealed bytes, `digest` their SHA-256. Only a server writes it. The record's metadata opens as with the content.
    case withheld(DataID, length: Int, digest: [UInt8])

    /// The version of the content.
    public var id: DataID {
        switch self {
        case .inline(let id, _), .blob(let id, _, _), .withheld(let id, _, _): id
        }
    }

    /// Bytes of the plain stream, padding included.
    public var plainLength: UInt64 {
        switch self {
        case .inline(_, let sealed): UInt64(max(0, sealed.count - AEADSuite.tagBytes))
        case .withheld(_, let length, _): UInt64(max(0, length - AEADSuite.tagBytes))
        case .blob(_, let length, _): Self.plainLength(sealed: length) ?? 0
        }
    }

    /// Bytes of the plain stream of sealed content.
    ///
    /// - Returns: nil for a length that sealed content with a header cannot have.
    public static func plainLength(sealed length: UInt64) -> UInt64? {
        let chunk = UInt64(ContentLayout.sealedChunkBytes)
        let chunks = length / chunk + (length % chunk == 0 ? 0 : 1)
        let (tags, overflow) = chunks.multipliedReportingOverflow(by: UInt64(AEADSuite.tagBytes))
        guard !overflow, length >= tags + UInt64(TreeLimits.contentHeaderBytes),
            let layout = try? ContentLayout(length: length - tags), layout.sealedLength == length
        else { return nil }
        return layout.length
    }

    /// The same content without its bytes; content in a blob stays as it is.
    public var withoutInline: RecordData {
        guard case .inline(let id, let sealed) = self else { return self }
        return .withheld(id, length: sealed.count, digest: Hash.sha256(sealed))
    }

    /// Reads `d`.
    init(_ value: JSONValue) throws(RecordFault) {
        guard case .object(let object) = value else { throw .wrongType(.data) }
        guard let id = object["id"]?.stringValue.flatMap(DataID.init(text:)) else { throw .badData }
        if object.count == 2, let inline = object["i"] {
            let sealed = try RecordValue.octets(inline, .data)
            guard (TreeLimits.contentBytesMin...TreeLimits.inlineBytesMax).contains(sealed.count) else {
                throw .badInlineSize
            }
            self = .inline(id, sealed: sealed)
        } else if object.count == 3, let length = object["z"],
            let blob = object["b"]?.stringValue.flatMap(BlobID.init(text:))
        {
            let length = UInt64(try RecordValue.number(length, .data, 0...Int64.max))
            guard Self.plainLength(sealed: length) != nil else { throw .badBlobSize }
            self = .blob(id, length: length, blob: blob)
        } else if object.count == 3, let length = object["y"], let digest = object["h"] {
            let bytes = Int64(TreeLimits.contentBytesMin)...Int64(TreeLimits.inlineBytesMax)
            let octets = try RecordValue.octets(digest, .data)
            guard octets.count == RecordData.digestBytes else { throw .badBytes(.data) }
            self = .withheld(id, length: Int(try RecordValue.number(length, .data, bytes)), digest: octets)
        } else {
            throw .badData
        }
    }

    private static let digestBytes = 32

    var json: JSONValue {
        switch self {
        case .withheld(let id, let length, let digest):
            [
                "id": .string(id.text), "y": .number(JSONNumber(Int64(length))),
                "h": .string(Base64.encodeURL(digest)),
            ]
        case .inline(let id, let sealed): ["id": .string(id.text), "i": .string(Base64.encodeURL(sealed))]
        case .blob(let id, let length, let blob):
            ["id": .string(id.text), "z": .number(JSONNumber(Int64(length))), "b": .string(blob.text)]
        }
    }

    /// 1 ‖ id ‖ length(8) ‖ SHA-256 of the sealed bytes, or 2 ‖ id ‖ length(8) ‖ blob id.
    var canonical: [UInt8] {
        switch self {
        case .inline: withoutInline.canonical
        case .withheld(let id, let length, let digest): [1] + id.octets + UInt64(length).octets + digest
        case .blob(let id, let length, let blob): [2] + id.octets + length.octets + blob.octets
        }
    }
}
