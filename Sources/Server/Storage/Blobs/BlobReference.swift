import ThicketProtocol
import ThicketTreeShape

/// The blob that a record names as its content.
struct BlobReference: Hashable, Sendable {
    let blob: BlobID
    /// The length that the record states, in bytes.
    let length: Int64

    /// - Returns: nil for a record whose content is inside it, or that has none.
    init?(of record: JSONObject) {
        guard case .object(let data)? = record[RecordKey.data.rawValue],
            let blob = data["b"]?.stringValue.flatMap(BlobID.init(text:)), let length = data["z"]?.intValue
        else { return nil }
        (self.blob, self.length) = (blob, length)
    }
}
