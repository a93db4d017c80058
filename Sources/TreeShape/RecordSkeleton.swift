import ThicketProtocol

/// A record without the content that is inside of it, for lists of children.
public enum RecordSkeleton {
    /// The text of a record in its written form, with `RecordData.withheld` instead of content inside of it. Only the
    /// content is read: everything else was checked when the record was stored, and is copied.
    ///
    /// - Throws: `RecordFault` for what is not an object, and for content that is not valid.
    public static func text(of record: [UInt8]) throws(RecordFault) -> [UInt8] {
        guard case .object(var object)? = try? JSONValue(parsing: record, maxDepth: TreeLimits.jsonDepthMax) else {
            throw .notJSON
        }
        let key = RecordKey.data.rawValue
        guard let data = try object[key].map(RecordData.init), case .inline = data else { return record }
        object[key] = data.withoutInline.json
        return JSONValue.object(object).serialized()
    }
}
