import ThicketProtocol

/// The file format of undelivered conflicts and integrity reports: JSON, `{"key":…,"path":[…],"losing":…,"winning":…}`,
/// `{"key":…,"kind":…,"position":…,"choice":…,"detail":…}`, and `{"missed":n}` for events beyond the bound. `losing` or
/// `winning` is absent when it is a deletion.
enum UndeliveredCodec {
    /// - Returns: nil for events that are not stored until their delivery.
    static func encode(_ event: BucketEvent) -> [UInt8]? {
        var json: JSONObject = [:]
        switch event {
        case .conflict(let report):
            json["key"] = .string(report.key)
            json["path"] = .array(report.path.map { .string($0) })
            json["losing"] = report.losing
            json["winning"] = report.winning
        case .integrity(let report):
            json["key"] = .string(report.key)
            json["kind"] = .string(report.kind.rawValue)
            json["position"] = report.position.map { .number(JSONNumber(Int64($0))) }
            json["choice"] = .bool(report.needsChoice)
            json["detail"] = .string(report.detail)
        case .overrun(let missed): json["missed"] = .number(JSONNumber(Int64(missed)))
        case .changed, .removed, .refused, .unavailable, .caughtUp: return nil
        }
        return json.serialized()
    }

    /// - Throws: `store` when the bytes do not come from `encode`.
    static func decode(_ bytes: [UInt8]) throws(ClientError) -> BucketEvent {
        let json = try EditCodec.object(bytes) ?? [:]
        if let missed = json["missed"]?.intValue { return .overrun(missed: Int(missed)) }
        guard let key = json["key"]?.stringValue,
            let event = conflict(key, json) ?? alarm(key, json)
        else { throw ClientError(.store, "an undelivered event in the local store is damaged") }
        return event
    }

    private static func conflict(_ key: String, _ json: JSONObject) -> BucketEvent? {
        guard let path = json["path"]?.arrayValue else { return nil }
        let names = path.compactMap(\.stringValue)
        guard names.count == path.count else { return nil }
        return .conflict(ConflictReport(key: key, path: names, losing: json["losing"], winning: json["winning"]))
    }

    private static func alarm(_ key: String, _ json: JSONObject) -> BucketEvent? {
        guard let kind = json["kind"]?.stringValue, let detail = json["detail"]?.stringValue,
            case .bool(let needsChoice)? = json["choice"]
        else { return nil }
        return .integrity(
            IntegrityReport(
                key: key, kind: IntegrityReport.Kind(rawValue: kind),
                position: json["position"]?.intValue.map { Int($0) },
                needsChoice: needsChoice, detail: detail))
    }
}
