extension TextDelta {
    /// The text after the edit.
    ///
    /// - Throws: `DeltaError.lengthMismatch` when the delta is for a text of another length.
    public func apply(to text: [UInt16]) throws(DeltaError) -> [UInt16] {
        guard text.count == sourceLength else {
            throw .lengthMismatch(delta: sourceLength, text: text.count)
        }
        return [UInt16](unsafeUninitializedCapacity: targetLength) { output, count in
            text.withUnsafeBufferPointer { copy(from: $0, to: output) }
            count = targetLength
        }
    }

    private func copy(from source: UnsafeBufferPointer<UInt16>, to output: UnsafeMutableBufferPointer<UInt16>) {
        var read = 0
        var written = 0
        for operation in operations {
            switch operation {
            case .retain(let count):
                (output.baseAddress! + written).initialize(from: source.baseAddress! + read, count: count)
                read += count
                written += count
            case .delete(let count):
                read += count
            case .insert(let units):
                units.withUnsafeBufferPointer {
                    (output.baseAddress! + written).initialize(from: $0.baseAddress!, count: $0.count)
                }
                written += units.count
            }
        }
    }

    /// The text after the edit.
    ///
    /// Works on UTF-8 if possible; a cut inside a surrogate pair takes the slower path over UTF-16.
    ///
    /// - Throws: `DeltaError.lengthMismatch` when the delta is for a text of another length, `.splitSurrogate` when the
    ///   result would contain half of a pair.
    public func apply(to text: String) throws(DeltaError) -> String {
        var source = text
        if let target = source.withUTF8({ applyToUTF8($0) }) { return target }
        let units = try apply(to: UTF16Text.units(of: source))
        guard let target = UTF16Text.string(of: units) else { throw .splitSurrogate }
        return target
    }

    /// The text after an edit that does not cut surrogate pairs, neither of the text nor of the insertions.
    ///
    /// - Throws: `DeltaError.lengthMismatch` when the delta is for a text of another length, `.splitSurrogate` when a
    ///   pair is cut, even if the edit joins both halves again.
    package func applyWhole(to text: String) throws(DeltaError) -> String {
        var source = text
        if let target = source.withUTF8({ applyToUTF8($0) }) { return target }
        let length = text.utf16Length
        guard length == sourceLength else { throw .lengthMismatch(delta: sourceLength, text: length) }
        throw .splitSurrogate
    }

    /// Nil when the steps do not end between characters of `source`.
    private func applyToUTF8(_ source: UnsafeBufferPointer<UInt8>) -> String? {
        guard source.count >= sourceLength else { return nil }
        let isASCII = source.count == sourceLength && UTF16Text.isASCII(source)
        guard isASCII || source.count > sourceLength else { return nil }
        let bound = source.count + insertedUnits * 3
        var fits = true
        let target = String(unsafeUninitializedCapacity: bound) { output in
            guard let count = write(source, isASCII: isASCII, to: output) else {
                fits = false
                return 0
            }
            return count
        }
        return fits ? target : nil
    }

    private var insertedUnits: Int {
        operations.reduce(0) { if case .insert(let units) = $1 { $0 + units.count } else { $0 } }
    }

    private func write(
        _ source: UnsafeBufferPointer<UInt8>, isASCII: Bool, to output: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        var read = 0
        var written = 0
        for operation in operations {
            switch operation {
            case .retain(let count), .delete(let count):
                let end = isASCII ? read + count : UTF16Text.offset(in: source, from: read, units: count)
                guard let end else { return nil }
                if case .retain = operation {
                    (output.baseAddress! + written).initialize(from: source.baseAddress! + read, count: end - read)
                    written += end - read
                }
                read = end
            case .insert(let units):
                let rest = UnsafeMutableBufferPointer<UInt8>(rebasing: output[written...])
                guard let count = units.withUnsafeBufferPointer({ UTF16Text.encode($0, into: rest) }) else {
                    return nil
                }
                written += count
            }
        }
        return read == source.count ? written : nil
    }
}
